"""Where events come from as they are written: a file that grows, a folder into which files come; a topic is in ``topic.py``.

Nothing waits here. Who asks gets what has come since, or nothing.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stretto.errors import DataError, OptionError, StrettoError
from stretto.events import first_deep_line
from stretto.matching.input.files import Source as Files
from stretto.matching.input.files import open_files
from stretto.studio.folder import FOLLOWED, parquet_files
from stretto.views.text import cut

#: Bytes of a text file that are read in one piece. A record is shorter.
LONGEST_RECORD = 1 << 18
#: Characters of what is said of a record or file that cannot be read.
SAID = 300
#: How many of them show the record itself.
SHOWN = 120


class Source(Protocol):
    """Where events come from."""

    @property
    def bad(self) -> int:
        """How many records, or files, were passed over, because they cannot be read."""

    @property
    def why(self) -> str | None:
        """Why the last of them was."""

    @property
    def waiting(self) -> str | None:
        """What is in the way of more: a file that is not whole yet, brokers that do not answer."""

    def more(self) -> pa.Table | None:
        """The next events; ``None``: none has come.

        Raises
        ------
        DataError
            No more can come from here.
        """

    def close(self) -> None:
        """Read no more."""


def follow(path: Path, schema: pa.Schema) -> Source:
    """Follow a CSV file, a file with a JSON object a line, or ``folder/*.parquet``; ``schema`` says the columns and their types.

    Raises
    ------
    OptionError
        It is no such file, or cannot be read.
    """
    if path.name == FOLLOWED:
        return ParquetFolder(path.parent, schema)
    kind = path.suffix.lower()
    if kind not in (".csv", ".json", ".jsonl", ".ndjson"):
        raise OptionError(
            f"'{path.name}' does not grow: a CSV file is followed, or JSON with an object a line, not compressed, "
            f"and the Parquet files that come into a folder: choose '{FOLLOWED}'"
        )
    return TextFile(path, schema, csv=kind == ".csv")


def readable(
    records: range, read: Callable[[range], pa.Table], refuse: Callable[[int, Exception], None]
) -> Iterator[pa.Table]:
    """The events of records that are read together; where one cannot be read, those of the others, which halving finds."""
    if not records:
        return
    try:
        yield read(records)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
        if len(records) == 1:
            refuse(records[0], error)
            return
        half = len(records) // 2
        yield from readable(records[:half], read, refuse)
        yield from readable(records[half:], read, refuse)


class TextFile:
    """A file to which records are appended. A record counts when its line has ended."""

    def __init__(self, path: Path, schema: pa.Schema, *, csv: bool) -> None:
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise OptionError(f"'{path.name}' cannot be read: {error.strerror}") from error
        self._path, self._schema, self._csv = path, schema, csv
        self._rest = b""  # read, and not parsed yet
        self._names_come = csv
        self.bad = 0
        self.why: str | None = None
        self.waiting: str | None = None

    def more(self) -> pa.Table | None:
        """The next events; ``None``: no record has been ended since."""
        read = self._file.read(LONGEST_RECORD - len(self._rest))
        self._rest += read
        ends = self._ends(self._rest)
        if not ends.size:
            if len(self._rest) == LONGEST_RECORD:
                reason = ": a quote is perhaps not closed" if self._csv else ""
                raise DataError(f"'{self._path.name}': a record has more than {LONGEST_RECORD:,} bytes{reason}")
            if not read:
                self._require_same()
            return None
        text, self._rest = self._rest, self._rest[ends[-1] :]
        bounds = [0, *ends.tolist()]
        found = list(
            readable(
                range(self._names_come, len(ends)),
                lambda part: self._read(text[bounds[part.start] : bounds[part.stop]]),
                lambda one, error: self._refuse(text[bounds[one] : bounds[one + 1]], error),
            )
        )
        self._names_come = False
        return pa.concat_tables(found) if found else self._schema.empty_table()

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def _ends(self, text: bytes) -> NDArray[np.int64]:
        """Where records end: behind each line break that stands in no quotes."""
        signs = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(signs == ord("\n"))
        if self._csv:
            quotes = np.flatnonzero(signs == ord('"'))
            ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
        return ends + 1

    def _refuse(self, record: bytes, error: Exception) -> None:
        self.bad += 1
        self.why = f"{cut(record.decode(errors='replace').strip(), SHOWN)}: {error}"[:SAID]

    def _read(self, text: bytes) -> pa.Table:
        if not text.strip():
            return self._schema.empty_table()
        if self._csv:
            from pyarrow import csv

            return csv.read_csv(
                io.BytesIO(text),
                read_options=csv.ReadOptions(column_names=self._schema.names, use_threads=False),
                parse_options=csv.ParseOptions(newlines_in_values=True),
                convert_options=csv.ConvertOptions(column_types=self._schema),
            )
        from pyarrow import json

        text.decode()  # which Arrow's reader of JSON does not look at
        if (deep := first_deep_line(text)) is not None:
            raise pa.ArrowInvalid(deep[1])
        made = json.read_json(
            io.BytesIO(text),
            read_options=json.ReadOptions(use_threads=False),
            parse_options=json.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore"),
        )
        return made.select(self._schema.names)

    def _require_same(self) -> None:
        """Raise a DataError unless the file that was opened is there, and has not been cut."""
        name, own = self._path.name, os.fstat(self._file.fileno())
        try:
            there = self._path.lstat()
        except OSError as error:
            raise DataError(f"'{name}' has gone") from error
        if (there.st_ino, there.st_dev) != (own.st_ino, own.st_dev):
            raise DataError(f"another file has taken the place of '{name}'")
        if own.st_size < self._file.tell():
            raise DataError(f"'{name}' has become shorter")


class ParquetFolder:
    """The Parquet files of a folder, each of which is read once, when it is whole. Those that are there at once come by name."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder, self._schema = folder, schema
        self._seen: set[Path] = set()
        self._pieces: Iterator[pa.Table] = iter(())
        self.bad = 0
        self.why: str | None = None
        self.waiting: str | None = None

    def more(self) -> pa.Table | None:
        """The next events; ``None``: no file has come, or those that have are not whole."""
        found = next(self._pieces, None)
        if found is not None:
            return found
        opened = self._next_file()
        if opened is None:
            return None
        self._pieces = self._tables(*opened)
        return self._schema.empty_table()

    def close(self) -> None:
        """Read no more."""
        self._pieces = iter(())

    def _next_file(self) -> tuple[str, Files] | None:
        """Open a file that has come and is whole."""
        try:
            files = parquet_files(self._folder)
        except OSError as error:
            raise DataError(f"the folder '{self._folder.name}' has gone") from error
        self.waiting = None
        for path in files:
            if path in self._seen:
                continue
            try:
                opened = open_files(path)
            except (StrettoError, OSError) as error:
                self.waiting = f"'{path.name}' is not whole yet: {error}"[:SAID]
                continue
            self._seen.add(path)
            return path.name, opened
        return None

    def _tables(self, name: str, file: Files) -> Iterator[pa.Table]:
        try:
            if missing := [one for one in self._schema.names if one not in file.schema.names]:
                raise DataError(f"it has no column '{missing[0]}'")
            for piece in file.read(self._schema.names, coded=False):
                assert isinstance(piece, pa.RecordBatch)  # nothing was asked, so that nothing is passed over
                yield pa.Table.from_batches([piece]).cast(self._schema)
        except (StrettoError, pa.ArrowInvalid, OSError) as error:
            self.bad += 1
            self.why = f"'{name}' was not read to its end: {error}"[:SAID]
