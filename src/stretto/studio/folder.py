"""The folder that the studio was given: what it reads and writes lies there, whatever a page asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from stretto.errors import OptionError
from stretto.matching.input.files import check_path, kind_of

#: Files that are listed.
MOST_FILES = 500
#: Files and folders that are looked at for that: the folder may be a whole disk.
_MOST_LOOKED_AT = 50_000
#: The Parquet files of a folder together, as a pattern of names says it.
FOLLOWED = "*.parquet"


def parquet_files(folder: Path) -> list[Path]:
    """The Parquet files in a folder, by name. What is hidden, linked or deeper is none of them.

    Raises
    ------
    OSError
        The folder has gone.
    """
    with os.scandir(folder) as found:
        names = [
            one.name
            for one in found
            if one.name.endswith(".parquet")
            and not one.name.startswith((".", "_"))
            and one.is_file(follow_symlinks=False)
        ]
    return [folder / name for name in sorted(names)]


class Folder:
    """A folder, outside of which nothing is read or written; links are followed before that is asked."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    def data_files(self) -> list[str]:
        """The first files of events, by their paths in the folder. What is hidden, or linked from outside, is none.

        Behind them stand the folders that have Parquet files, as ``folder/*.parquet``.
        """
        found, together = [], set()
        for path in self._files():
            if kind_of(path) is not None and path.resolve().is_relative_to(self.path):
                found.append(path.relative_to(self.path).as_posix())
                if path.suffix == ".parquet" and not path.is_symlink():
                    together.add(path.with_name(FOLLOWED).relative_to(self.path).as_posix())
            if len(found) == MOST_FILES:
                break
        return [*found, *sorted(together)]

    def _files(self) -> Iterator[Path]:
        looked_at = 0
        for folder, folders, files in os.walk(self.path):
            folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
            for name in sorted(files):
                if not name.startswith((".", "_")):
                    yield Path(folder, name)
            looked_at += len(folders) + len(files)
            if looked_at > _MOST_LOOKED_AT:
                return

    def inside(self, name: str) -> Path:
        """The path of a file in the folder, with links followed.

        Raises
        ------
        OptionError
            It lies outside, or is no name of a file.
        """
        check_path(name)
        found = (self.path / name).resolve()
        if not found.is_relative_to(self.path):
            raise OptionError(f"'{name}' lies outside of the folder that the studio was given")
        check_path(found)
        return found

    def data(self, name: str) -> Path:
        """The path of a file of events, or of the Parquet files of a folder together (:data:`FOLLOWED`)."""
        found = self.inside(name)
        if found.name == FOLLOWED and found.parent.is_dir() and parquet_files(found.parent):
            return found
        if not found.is_file() or kind_of(found) is None:
            raise OptionError(f"'{name}' is no file of events in the folder")
        return found

    def write(self, name: str, text: str, *, ending: str, replace: bool = False) -> str:
        """Write a file; gives its path in the folder.

        Raises
        ------
        OptionError
            It lies outside, does not end in ``ending``, or is there and shall not be replaced.
        """
        path = self.inside(name)
        if path.suffix != ending or path.name.startswith("."):
            raise OptionError(f"'{name}': a name that ends in {ending} is needed")
        if not path.parent.is_dir():
            raise OptionError(f"'{name}': there is no such folder")
        try:
            with path.open("w" if replace else "x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError as error:
            raise OptionError(f"'{name}' is there already") from error
        except OSError as error:
            raise OptionError(f"'{name}' cannot be written: {error.strerror}") from error
        return path.relative_to(self.path).as_posix()
