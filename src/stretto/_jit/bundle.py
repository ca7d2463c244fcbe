"""Compiled code that comes with the package: a platform wheel holds that of all kernels.

It lies in the folder ``kernels`` beside this module, in a folder that names the edition (``directory.py``) and the target: for which
processors it was made. It is read as the package's sources are, also from an archive, and trusted as they are: whoever can
write it can write them.
"""

from __future__ import annotations

import importlib.resources
import io
import logging
import pickle
import platform
from functools import cache
from importlib.resources.abc import Traversable
from typing import Any

import numba
from llvmlite import binding as llvm
from numba.core import config

from stretto._jit.directory import edition

log = logging.getLogger("stretto")

#: For which processors a wheel's code is made, by kind of machine: LLVM's name for them, and the features that they have.
TARGETS = {
    "x86_64": ("x86-64-v3", ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")),
    "aarch64": ("generic", ()),
}

#: What comes of reading code of which a part is missing, or something else.
TORN = (EOFError, pickle.UnpicklingError, ValueError, LookupError, AttributeError, ImportError, TypeError)

FOLDER = "kernels"  #: in the package, beside this module


def target() -> tuple[str, tuple[str, ...]]:
    """For which processors a wheel of this kind of machine is made, and what they must have."""
    return TARGETS.get(platform.machine(), ("", ()))


def name() -> str:
    """What the folder of code is called that this process can take."""
    return f"{edition()}-{target()[0]}"


def there() -> bool:
    """Whether the package holds code for this process."""
    return _folder() is not None


def load(module: str, function: str, key: tuple[Any, ...]) -> Any:
    """The code of a kernel, if it came with the package.

    Parameters
    ----------
    module, function
        Where the kernel lies, and what the files of its code are called.
    key
        Numba's key of an entry of its cache: the types of arguments, the processor, and digests of the kernel.
    """
    if not there():
        return None
    types, (triple, *_), digests = key
    try:
        file = _index(module, function).get((types, (triple, target()[0], ""), digests))
        data = None if file is None else read(module, file)
        return None if data is None else pickle.loads(data)
    except TORN as error:
        log.warning("compiled code that came with stretto is damaged, and is compiled anew: %s: %r", function, error)
        return None


def read(folder: str, file: str) -> bytes | None:
    """A file that came with compiled code, if there is such a one."""
    whole = _folder()
    try:
        return None if whole is None else (whole / folder / file).read_bytes()
    except OSError:
        return None


@cache
def _index(module: str, function: str) -> dict[Any, str]:
    """The file of code for each key, of one kernel, as Numba writes it."""
    data = read(module, f"{function}.nbi")
    if data is None:
        return {}
    with io.BytesIO(data) as file:
        version, (_, files) = pickle.load(file), pickle.load(file)
    return dict(files) if version == numba.__version__ else {}


@cache
def _folder() -> Traversable | None:
    """The folder of code that this process can take. Where there is one that it cannot take, it is said why."""
    if config.DISABLE_JIT or config.BOUNDSCHECK:
        return None
    whole = importlib.resources.files(__package__) / FOLDER
    if not whole.is_dir():
        return None
    why = _misfit([entry.name for entry in whole.iterdir()])
    if why:
        log.warning("the compiled code that came with stretto is not taken, and kernels are compiled anew: %s", why)
        return None
    return whole / name()


def _misfit(folders: list[str]) -> str:
    """Why this process cannot take any of these folders of code; empty if it can."""
    if name() not in folders:
        made = sorted({part for entry in folders for part in entry.split("-")[1:2]})
        here = f"numba{numba.__version__}"
        return (
            f"it is of {', '.join(made) or 'nothing'}, here is {here}"
            if here not in made
            else "its sources have changed"
        )
    lacking = [feature for feature in target()[1] if f"+{feature}" not in features()]
    return f"this processor lacks {', '.join(lacking)}" if lacking else ""


def features() -> list[str]:
    """What the processor has, or what Numba is told that it has, each with a sign before it."""
    told = config.CPU_FEATURES
    if told is None:
        told = llvm.get_host_cpu_features().flatten()
    return str(told).split(",")
