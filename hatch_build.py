"""The package's page: the README without links to files of the repository, which lead nowhere from there."""

import os
import re
import sys
import sysconfig
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = r"\((?!\w+:)[^)\s]+\)"


def without_relative_links(text: str) -> str:
    """Markdown with relative links as their texts, and without pictures of the repository and the lines in italics below them.

    >>> print(without_relative_links("See [a page](a.md) of [PyPI](https://pypi.org).\\n\\n![A picture](a.png)\\n\\n*It is.*"))
    See a page of [PyPI](https://pypi.org).
    <BLANKLINE>
    <BLANKLINE>
    """
    text = re.sub(rf"^!\[[^\]]*\]{RELATIVE}\n\n?(?:\*[^*\n]+(?:\n[^*\n]+)*\*\n*)?", "", text, flags=re.MULTILINE)
    return re.sub(rf"\[([^\]]+)\]{RELATIVE}", r"\1", text)


class Readme(MetadataHookInterface):
    """Gives the field ``readme``."""

    def update(self, metadata: dict) -> None:
        """Set the field."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_relative_links(text)}


class Kernels(BuildHookInterface):
    """Adds compiled code, where the environment names a folder of it (packaging/kernels.py): the wheel is one of a platform."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Say what the wheel holds, and for which Python and machine it is."""
        folder = os.environ.get("STRETTO_KERNELS")
        if not folder or version != "standard":
            return
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if system.startswith("linux_"):  # the code calls the C library's mathematics alone, of any version
            system = system.replace("linux_", "manylinux_2_17_", 1)
        build_data["force_include"][folder] = "stretto/_jit/kernels"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{system}"
