"""Events in files: one way from paths, directories, patterns of names and datasets to rows, for calls and the command line.

The rows of all files are numbered from 0, in the order of the files' names (or as they are listed), as if they were one table.
Only the columns that are asked for are read, strings as dictionaries where Parquet holds them so, one row group after the other;
row groups whose statistics say that nothing in them can matter are passed over, and still counted.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import glob
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.column_types import without_views
from stretto.errors import DataError, OptionError, hinted
from stretto.events import first_deep_line, refuse_deep
from stretto.matching.input.derived_columns import Derived

if TYPE_CHECKING:
    import pyarrow.dataset as ds

#: Formats by the ending of a file's name.
ENDINGS = {
    "parquet": "parquet",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "arrow": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
}

FORMATS = ("parquet", "csv", "jsonl", "arrow")

_COMPRESSED = ("gz", "zst", "bz2", "lz4")

#: A column of strings is read as a dictionary if Parquet holds it in so many bytes a row at most: in codes, that is.
CODED = 4.0

#: Rows of a piece that is read: few of them, since each costs some hundred calls; ^C acts between two.
PIECE = 1 << 18

#: Arrow guesses the types of JSON by so many bytes; what they do not have is passed over behind them.
GUESSED = 1 << 20

_ZERO_FIRST = "^[+-]?0[0-9]"


def are_files(events: Any) -> bool:
    """Whether events are given as files: a path, several, or a dataset."""
    if isinstance(events, str | Path | Source) or _is_dataset(events):
        return True
    return isinstance(events, list | tuple) and bool(events) and all(isinstance(one, str | Path) for one in events)


def are_files_of_stream(value: Any) -> bool:
    """Whether a value of a dict is the files of a stream: a list of texts is a column of one table there, and no list of paths."""
    return are_files(value) and not isinstance(value, list | tuple)


def _is_dataset(events: Any) -> bool:
    """Whether events are a dataset. It takes pandas to import these, and who gives one has imported them."""
    datasets = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(events, datasets.Dataset)


def table_of(events: Any) -> Any:
    """Files as one table in memory; anything else as it is."""
    return open_files(events).table() if are_files(events) else events


def open_files(events: Any, *, format: str | None = None, types: Mapping[str, pa.DataType] | None = None) -> Source:
    """The events of files.

    Parameters
    ----------
    events
        A path: a file, a directory (``key=value`` folders are columns) or a pattern with ``*``; a list of paths; or a
        :class:`pyarrow.dataset.Dataset`.
    format
        ``parquet``, ``csv``, ``jsonl`` or ``arrow``; ``None``: by the files' endings.
    types
        Types of columns that are not to be guessed.

    Raises
    ------
    OptionError
        There is no such file, or it has no known format.
    DataError
        A file does not hold what its ending says.
    """
    if isinstance(events, Source):
        return events
    if _is_dataset(events):
        return Source([events], types)
    paths = [events] if isinstance(events, str | Path) else list(events)
    found = [one for path in paths for one in _expanded(path, format).items()]
    names = [name for name, _ in found]
    base = min((base for _, base in found), key=len)  # of several folders, the outermost
    return _opened(names, base, _kind_of_all(names, format), dict(types or {}))


class Source:
    """Events in files.

    Parameters
    ----------
    parts
        Datasets, one behind the other.
    types
        Types of columns, in place of those in the files.
    """

    #: The columns that are made of those in the files.
    derived = Derived()

    def __init__(self, parts: Sequence[ds.Dataset], types: Mapping[str, pa.DataType] | None = None) -> None:
        self._parts = list(parts)
        self.schema = _together([part.schema for part in parts], types or {})
        #: Row groups that were passed over by their statistics.
        self.skipped = 0

    @property
    def rows(self) -> int | None:
        """How many events there are, where the files say it; ``None``: they must be read."""
        rows = 0
        for fragment, _ in self._fragments():
            if not hasattr(fragment, "row_groups"):  # not Parquet
                return None
            rows += sum(group.num_rows for group in fragment.row_groups)
        return rows

    def deriving(self, derived: Derived) -> Source:
        """The same files with columns that are made of theirs."""
        found = copy.copy(self)
        found.derived = derived
        found.schema = derived.added_to(self.schema.empty_table()).schema
        return self if found.schema.names == self.schema.names else found

    def table(self, names: Sequence[str] | None = None) -> pa.Table:
        """All events in memory."""
        wanted = self.schema if names is None else pa.schema([self.schema.field(name) for name in names])
        pieces = [piece for piece in self.read(wanted.names, coded=False) if isinstance(piece, pa.RecordBatch)]
        return pa.Table.from_batches(pieces, schema=wanted)

    def read(
        self, names: Sequence[str], asked: pc.Expression | None = None, *, coded: bool = True
    ) -> Iterator[pa.RecordBatch | int]:
        """The named columns of all events in order, in pieces; or how many events lie where none fulfils ``asked``.

        ``coded``: columns of strings may come as dictionaries. Memory: some row groups of the columns.
        """
        from pyarrow.dataset import FileFragment

        names = names or self.schema.names[:1]  # rows without columns could not be counted
        for fragment, schema in self._fragments():
            read = [own for name in names for own in self.derived.made_of(name)]
            roots = (name if name in schema.names else name.partition(".")[0] for name in read)
            known = [name for name in dict.fromkeys(roots) if name in schema.names]
            try:
                if hasattr(fragment, "row_groups"):  # Parquet
                    same = all(own.type == self.schema.field(own.name).type for own in schema)
                    pieces = self._read_parquet(fragment, schema, known, asked if same else None, coded)
                else:
                    pieces = fragment.to_batches(schema=schema, columns=known, batch_size=PIECE)
                for piece in pieces:
                    if isinstance(piece, int):
                        yield piece
                    elif piece.num_rows:
                        if isinstance(fragment, FileFragment) and fragment.format.default_extname == "json":
                            piece.validate(full=True)  # Arrow takes any bytes for text in JSON
                        yield self._fitted(piece, names)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                path = getattr(fragment, "path", "the dataset")
                raise DataError(f"{path}{_wrong_line(path)}: {str(error).rpartition('Invalid: ')[2]}") from error

    def _fragments(self) -> Iterator[tuple[ds.Fragment, pa.Schema]]:
        for part in self._parts:
            for fragment in part.get_fragments():
                yield fragment, part.schema

    def _fitted(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """A batch with all the columns, of the types that they have in all files together."""
        fields = [self.schema.field(name) for name in names]
        if self.derived.keys or any("." in one for one in names):
            table = pa.Table.from_batches([batch])
            for name in (own for key in self.derived.keys for own in self.derived.made_of(key.name)):
                root = name if name in self.schema.names else name.partition(".")[0]
                if root not in table.column_names and root in self.schema.names:  # another file has it
                    kind = self.schema.field(root).type
                    table = table.append_column(root, pa.nulls(table.num_rows, kind))
            batch = self.derived.among(names).added_to(table).combine_chunks().to_batches()[0]
        columns = []
        for own in fields:
            if own.name not in batch.schema.names:
                columns.append(pa.nulls(batch.num_rows, own.type))
                continue
            column = batch.column(own.name)
            coded = pa.types.is_dictionary(column.type) and column.type.value_type == own.type
            columns.append(column if coded or column.type == own.type else column.cast(own.type))
        return pa.RecordBatch.from_arrays(columns, list(names))

    def _read_parquet(
        self,
        fragment: ds.ParquetFileFragment,
        schema: pa.Schema,
        names: list[str],
        asked: pc.Expression | None,
        coded: bool,
    ) -> Iterator[pa.RecordBatch | int]:
        groups = fragment.row_groups
        wanted = {group.id for group in groups}
        if asked is not None:
            kept = fragment.split_by_row_group(asked, schema=schema)
            wanted = {group.id for one in kept for group in one.row_groups}
        codes = _in_codes(fragment, schema, names) if coded else []
        reader = _with_dictionaries(fragment, codes)
        kind = pa.dictionary(pa.int32(), pa.string())
        schema = pa.schema([own.with_type(kind) if own.name in codes else own for own in schema])
        for skip, run in groupby(groups, lambda group: group.id not in wanted):
            here = list(run)
            if skip:
                self.skipped += len(here)
                yield sum(group.num_rows for group in here)
                continue
            part = reader.subset(row_group_ids=[group.id for group in here])
            # Memory that malloc keeps for the next piece: Arrow's own pool gives it back, and clearing it anew takes longer.
            pool = pa.system_memory_pool()
            yield from part.to_batches(
                schema=schema,
                columns=names,
                batch_size=PIECE,
                batch_readahead=2,
                fragment_readahead=1,
                memory_pool=pool,
            )


def _together(schemas: Sequence[pa.Schema], types: Mapping[str, pa.DataType]) -> pa.Schema:
    """The columns of all files, with types that hold the values of all."""
    plain = [
        pa.schema([pa.field(own.name, types.get(own.name, without_views(own.type))) for own in schema])
        for schema in schemas
    ]
    try:
        return pa.unify_schemas(plain, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"the files' columns have no common types: {error}") from error


def _in_codes(fragment: ds.ParquetFileFragment, schema: pa.Schema, names: list[str]) -> list[str]:
    """The columns of strings that a Parquet file holds in codes."""
    metadata = fragment.metadata
    if not metadata.num_rows:
        return []
    group = metadata.row_group(0)
    found = []
    for i in range(group.num_columns):
        column = group.column(i)
        name = column.path_in_schema
        few_bytes = column.total_uncompressed_size <= CODED * group.num_rows + (1 << 12)  # with those of the dictionary
        if few_bytes and column.has_dictionary_page and name in names and pa.types.is_string(schema.field(name).type):
            found.append(name)
    return found


def _with_dictionaries(fragment: ds.ParquetFileFragment, names: list[str]) -> ds.ParquetFileFragment:
    """The same part of a file, read with dictionaries."""
    import pyarrow.dataset as ds

    if not names:
        return fragment
    options = fragment.format.read_options
    reading = ds.ParquetReadOptions(
        dictionary_columns={*options.dictionary_columns, *names},
        coerce_int96_timestamp_unit=options.coerce_int96_timestamp_unit,
    )
    made: ds.ParquetFileFragment = ds.ParquetFileFormat(read_options=reading).make_fragment(
        fragment.path, fragment.filesystem, fragment.partition_expression
    )
    return made


# -- names -------------------------------------------------------------------------------------------------------------


def check_path(path: str | Path) -> None:
    """Raise an :class:`OptionError` for what the system takes for no path at all: too long a name, half a character, a NUL."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else str(error)
        name = ascii(str(path))
        raise OptionError(f"{name if len(name) < 100 else name[:80] + '…'} is no path of a file: {told}") from error


def _expanded(path: str | Path, format: str | None) -> dict[str, str]:
    """The files that a path names, in order, and the folder from which ``key=value`` folders count."""
    text = str(path)
    if "://" in text:
        raise OptionError(f"'{text}' is no path of this machine: give pyarrow.dataset.dataset('{text}', …)")
    check_path(text)
    found = Path(text)
    if found.is_dir():
        files = sorted(one for one in found.rglob("*") if one.is_file() and not _is_hidden(one.relative_to(found)))
        if format is None:
            files = [one for one in files if kind_of(one) is not None]
        if not files:
            raise OptionError(f"there are no events in '{text}': no file ends in {_endings()}")
        return {str(one): text for one in files}
    if found.exists():
        return {text: str(found.parent)}
    if glob.has_magic(text):
        names = sorted(name for name in glob.glob(text, recursive=True) if Path(name).is_file())
        if not names:
            raise OptionError(f"no file is named like '{text}'")
        base = re.split(r"[*?\[]", text)[0]
        return dict.fromkeys(names, str(Path(base).parent if not base.endswith("/") else Path(base)))
    there = [one.name for one in found.parent.iterdir()] if found.parent.is_dir() else []
    raise OptionError(hinted(f"no such file: {text}", found.name, there, kind="file"))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def kind_of(path: str | Path) -> str | None:
    """The format that a file's name says (also compressed: ``.csv.gz``)."""
    endings = [ending.removeprefix(".").lower() for ending in Path(path).suffixes]
    while endings and endings[-1] in _COMPRESSED:
        endings.pop()
    return ENDINGS.get(endings[-1]) if endings else None


def _kind_of_all(paths: list[str], format: str | None) -> str:
    if format is not None:
        if format not in (*FORMATS, "json"):
            raise OptionError(f"format {format!r}: expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
        return ENDINGS[format]
    kinds = {kind_of(path): path for path in paths}
    if None in kinds:
        raise OptionError(
            f"cannot read '{Path(kinds[None]).name}': end it in {_endings()}, or say what it is (--format, or a pyarrow dataset)"
        )
    if len(kinds) > 1:
        raise OptionError(f"files of one kind make one stream, and these are {' and '.join(sorted(map(str, kinds)))}")
    return str(next(iter(kinds)))


def _endings() -> str:
    return ".parquet, .csv, .json, .jsonl or .arrow"


# -- datasets ----------------------------------------------------------------------------------------------------------


def _opened(paths: list[str], base: str, kind: str, types: dict[str, pa.DataType]) -> Source:
    folders = _folders(paths, base)
    given = {name: type for name, type in types.items() if name not in folders}
    parts = []
    for path in paths:
        if kind == "json":
            _refuse_deep_lines(path)
        try:
            parts.append(_dataset(path, base, kind, folders, given))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            if not Path(path).stat().st_size:
                raise DataError(f"{path}: the file is empty") from error
            raise DataError(f"{path}{_wrong_line(path)}: {str(error).rpartition('Invalid: ')[2]}") from error
    for path, part in zip(paths, parts, strict=True):
        try:
            _ = part.schema.names  # Arrow reads names when they are asked for
        except UnicodeDecodeError as error:
            raise DataError(_no_text(path, "the name of a column")) from error
        try:
            refuse_deep(part.schema)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
    if kind == "csv":
        for path, part in zip(paths, parts, strict=True):
            for own in part.schema:
                if pa.types.is_binary(own.type) and own.name not in given:
                    raise DataError(_no_text(path, f"column '{own.name}'"))
        other = _unguessed(paths, parts, [*given, *folders])
        if other:
            parts = [_dataset(path, base, kind, folders, other | given) for path in paths]
    made = Source(parts, types)
    for name in types:
        if name not in made.schema.names:
            raise OptionError(
                hinted(f"there is no column '{name}' to give a type", name, made.schema.names, kind="column")
            )
    return made


def _refuse_deep_lines(path: str) -> None:
    """Raise a :class:`DataError` for the first line of JSON that is nested without an end, which has a type that nobody means."""
    deep = None
    # What is wrong with the bytes of a file shows when it is read.
    with contextlib.suppress(OSError), pa.input_stream(path) as file:
        deep = first_deep_line(file.read(GUESSED))
    if deep is not None:
        line, what = deep
        raise DataError(f"{path}, line {line + 1}: {what}")


def _no_text(path: str, what: str) -> str:
    """What is wrong with a file in which a column, or the name of one, has bytes that are no text."""
    with pa.input_stream(path) as file:
        text: bytes = file.read()
    line = 0
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
    where = f"{path}, line {line}" if line else path
    return (
        f"{where}: {what} has bytes that are no UTF-8: write the file anew in UTF-8, such as "
        f"iconv -f latin1 -t utf-8 {Path(path).name} > new.csv"
    )


def _dataset(
    path: str, base: str, kind: str, folders: Mapping[str, pa.DataType], types: Mapping[str, pa.DataType]
) -> ds.Dataset:
    import pyarrow.dataset as ds
    from pyarrow.csv import ConvertOptions

    format: Any = kind
    if kind == "csv":
        format = _csv(ConvertOptions(column_types=dict(types)))
    if not folders:
        return ds.dataset([path], format=format)
    partitioning = ds.partitioning(pa.schema(list(folders.items())), flavor="hive")
    return ds.dataset([path], format=format, partitioning=partitioning, partition_base_dir=base)


def _csv(convert: Any) -> ds.CsvFileFormat:
    """How files of CSV are read: lines of spaces are blank ones, which are passed over."""
    import pyarrow.dataset as ds
    from pyarrow.csv import ParseOptions

    parse = ParseOptions(invalid_row_handler=lambda row: "error" if row.text.strip() else "skip")
    return ds.CsvFileFormat(parse_options=parse, convert_options=convert)


def _wrong_line(path: str) -> str:
    """Where a file of JSON or CSV has the first record that is none, ``", line 7"``; empty where each is one, and of other files."""
    kind = kind_of(path)
    if kind not in ("json", "csv") or not Path(path).is_file():
        return ""
    try:
        with io.TextIOWrapper(pa.input_stream(path), encoding="utf-8", errors="replace", newline="") as lines:
            if kind == "json":
                wrong = (number for number, line in enumerate(lines, 1) if line.strip() and not _is_object(line))
            else:
                rows = csv.reader(lines)
                records = ((rows.line_num, row) for row in rows if any(value.strip() for value in row))
                _, header = next(records, (0, []))
                wrong = (number for number, row in records if len(row) != len(header))
            number = next(wrong, None)
    except (OSError, csv.Error):  # compressed bytes that are damaged; values longer than the module takes
        number = None
    return "" if number is None else f", line {number}"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _folders(paths: list[str], base: str) -> dict[str, pa.DataType]:
    """The columns that folders named ``key=value`` make: integers where all values are, with no leading zeros, else strings."""
    values: dict[str, list[str]] = {}
    for path in paths:
        own = Path(path)
        inner = own.relative_to(base) if own.is_relative_to(base) else own
        for part in inner.parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, []).append(value)
    return {
        name: pa.int64() if all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", value) for value in found) else pa.string()
        for name, found in values.items()
    }


def _unguessed(paths: Sequence[str], parts: Sequence[ds.Dataset], told: Sequence[str]) -> dict[str, pa.DataType]:
    """Columns of CSV files that were taken for numbers by their first rows, and are not: what they are.

    Numbers do not begin with a zero (``007``); those are strings, for ``007`` and ``7`` are not one key. All rows are looked at.
    """
    import pyarrow.dataset as ds
    from pyarrow.csv import ConvertOptions

    first: dict[str, set[pa.DataType]] = {}
    found: dict[str, pa.DataType] = {}
    for path, part in zip(paths, parts, strict=True):
        numbers = [own.name for own in part.schema if _is_number(own.type) and own.name not in told]
        for name in numbers:
            own = part.schema.field(name).type
            first.setdefault(name, set()).add(own)
            found[name] = _wider(found.get(name, own), own)
        if not numbers:
            continue
        options = ConvertOptions(column_types=dict.fromkeys(numbers, pa.string()), strings_can_be_null=True)
        texts = ds.dataset([path], format=_csv(options))
        for batch in texts.to_batches(columns=numbers):
            for name in numbers:
                if not pa.types.is_string(found[name]):
                    found[name] = _holding(batch.column(name), found[name])
    return {name: kind for name, kind in found.items() if first[name] != {kind}}


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    return one if pa.types.is_string(one) or pa.types.is_floating(one) else other


def _holding(texts: pa.Array, kind: pa.DataType) -> pa.DataType:
    """A type for a column so far of ``kind`` and these values: the same, floats, or strings."""
    known = pc.utf8_trim_whitespace(texts.drop_null())
    if pc.any(pc.match_substring_regex(known, _ZERO_FIRST)).as_py():
        return pa.string()
    for wanted in (kind, pa.float64()):
        try:
            pc.cast(known, wanted)
        except pa.ArrowInvalid:
            continue
        return wanted
    return pa.string()
