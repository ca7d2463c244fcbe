"""Delta tables as the package ``deltalake`` opens them, with what is private in it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stretto.errors import DataError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

#: What a table may ask of its readers beyond the first versions of the format.
_READABLE = frozenset({"timestampNtz"})


def uri_of(path: str | Path) -> str:
    """The table's place, the same from every working directory."""
    text = str(path)
    return text if "://" in text else str(Path(text).absolute())


def open_table(uri: str, storage: dict[str, str], version: int | None = None) -> DeltaTable:
    """A table that this module can read.

    Raises
    ------
    OptionError
        ``deltalake`` is not installed, or the table uses a feature that is not read here.
    DataError
        There is no table.
    """
    require_deltalake()
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(uri, version=version, storage_options=storage)
    except TableNotFoundError as error:
        raise DataError(f"'{uri}' is not a Delta table ({error})") from error
    protocol = table.protocol()
    unread = sorted(set(protocol.reader_features or ()) - _READABLE)
    if unread or protocol.min_reader_version == 2:
        raise OptionError(
            f"'{uri}': the Delta table uses {', '.join(unread) or 'columnMapping'}, which is not read here"
        )
    return table


def require_deltalake() -> None:
    """Raise an :class:`OptionError` where the package is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise OptionError(f"Delta tables need the package deltalake ({error}): pip install 'stretto[delta]'") from error


def filesystem(uri: str, storage: dict[str, str]) -> pa.fs.PyFileSystem:
    """The table's directory as a file system."""
    from deltalake import DeltaTable
    from deltalake.fs import DeltaStorageHandler
    from pyarrow import fs

    table = DeltaTable(uri, storage_options=storage, without_files=True)
    return fs.PyFileSystem(DeltaStorageHandler.from_table(table._table, storage))
