"""Delta tables as the package ``deltalake`` opens them, with what is private in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stretto.errors import DataError, OptionError

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable, Transaction

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


@dataclass(frozen=True)
class Batches:
    """The batches of a query, as tables remember them: under the name that the user gave, and under that of the query.

    Parameters
    ----------
    app_id
        The name that the user gave.
    query
        The query's own id; ``None``: a batch does not tell.
    """

    app_id: str
    query: str | None

    @property
    def _own(self) -> str | None:
        return None if self.query is None else f"{self.app_id}/{self.query}"

    def has(self, table: DeltaTable, uri: str, batch_id: int, *, other: str) -> bool:
        """Whether a table has a batch.

        Raises
        ------
        OptionError
            It has a batch of another query, which would be taken for this one; ``other`` says what else to name.
        """
        done = table.transaction_version(self.app_id)
        if done is None or done < batch_id:
            return False
        if self._own is not None and table.transaction_version(self._own) is None:
            raise OptionError(
                f"'{uri}' has batches up to {done} of another query with app_id={self.app_id!r}: batch {batch_id} of this "
                f"one would be taken for written. Take another {other}, or start from that query's checkpoint"
            )
        return True

    def transactions(self, batch_id: int) -> list[Transaction]:
        """What a commit remembers of a batch."""
        from deltalake import Transaction

        return [Transaction(name, batch_id) for name in (self.app_id, self._own) if name is not None]


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
