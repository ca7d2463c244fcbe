"""The package's page: the README without links to files of the repository, which lead nowhere from there."""

import re
from pathlib import Path

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
