"""Types of columns: which stand for the same values, which is wider, and what is to be done where one does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stretto.errors import DataError

_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
_DECIMAL = re.compile(r"decimal(128|256)\((\d+), (-?\d+)\)")


def type_named(text: str) -> pa.DataType:
    """The type of a name, as ``str`` gives it for types without inner ones, or as Arrow's aliases are.

    Raises
    ------
    ValueError
        There is none.

    >>> type_named("timestamp[us, tz=UTC]"), type_named("decimal128(10, 2)"), type_named("int64")
    (TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(10, 2)), DataType(int64))
    """
    if zoned := _ZONED.fullmatch(text):
        return pa.timestamp(zoned[1], zoned[2])
    if decimal := _DECIMAL.fullmatch(text):
        return (pa.decimal128 if decimal[1] == "128" else pa.decimal256)(int(decimal[2]), int(decimal[3]))
    return pa.type_for_alias(text)


#: Lists and structs may lie so deep inside of each other: deeper ones would end the recursions over types.
DEEPEST = 100


def is_too_deep(kind: pa.DataType) -> bool:
    """Whether lists and structs lie deeper inside of each other than :data:`DEEPEST`; without recursion.

    >>> is_too_deep(pa.list_(pa.struct({"a": pa.int64()})))
    False
    """
    level = [kind]
    for _ in range(DEEPEST + 1):
        level = [own.field(at).type for own in level if pa.types.is_nested(own) for at in range(own.num_fields)]
        if not level:
            return False
    return True


def without_views(kind: pa.DataType) -> pa.DataType:
    """A type with plain strings and bytes in place of views (what polars exports), also inside of lists and structs.

    Arrow cannot select rows of views yet. Nor does it compute with floats of 16 bits, which become those of 32, or make dictionaries
    of values other than texts and integers, which become these values.

    >>> without_views(pa.list_(pa.string_view())), without_views(pa.dictionary(pa.int8(), pa.date32()))
    (ListType(list<item: large_string>), DataType(date32[day]))
    """
    if kind.id not in _MAY_HOLD_VIEWS:
        return kind
    if pa.types.is_float16(kind):
        return pa.float32()
    if (
        pa.types.is_dictionary(kind)
        and family(kind) not in ("string", "bytes")
        and not pa.types.is_integer(kind.value_type)
    ):
        return without_views(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    return _rebuilt(kind, without_views)


_INT = pa.int32()
_MAY_HOLD_VIEWS = frozenset(
    kind.id
    for kind in (
        pa.string_view(),
        pa.binary_view(),
        pa.float16(),
        pa.struct([]),
        pa.map_(_INT, _INT),
        pa.list_(_INT, 1),
        pa.large_list(_INT),
        pa.list_(_INT),
        pa.dictionary(_INT, _INT),
    )
)


def _rebuilt(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """A type whose inner types are changed; the same one where none of them is."""
    types = pa.types

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if types.is_struct(kind):
        made = pa.struct([inner(field) for field in kind])
    elif types.is_map(kind):
        made = pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    elif types.is_fixed_size_list(kind):
        made = pa.list_(inner(kind.value_field), kind.list_size)
    elif types.is_large_list(kind):
        made = pa.large_list(inner(kind.value_field))
    elif types.is_list(kind):
        made = pa.list_(inner(kind.value_field))
    elif types.is_dictionary(kind):
        made = pa.dictionary(kind.index_type, change(kind.value_type), kind.ordered)
    else:
        return kind
    return kind if made == kind else made


def field_type(attributes: Mapping[str, pa.DataType], path: str) -> pa.DataType | None:
    """The type of a field inside of a struct, by its path; ``None``: it is none, or an attribute is called so.

    >>> field_type({"address": pa.struct({"city": pa.string()})}, "address.city")
    DataType(string)
    """
    root, *names = path.split(".")
    if path in attributes or root not in attributes:
        return None
    kind = attributes[root]
    for name in names:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(kind.get_field_index(name)).type
    return without_views(kind)


def field_types(attributes: Mapping[str, pa.DataType], paths: Iterable[str | None]) -> dict[str, pa.DataType]:
    """The types of those paths that lead to fields inside of structs."""
    return {path: kind for path in paths if path is not None and (kind := field_type(attributes, path)) is not None}


def all_fields(attributes: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The types of all fields inside of structs, by their paths.

    >>> list(all_fields({"a": pa.struct({"b": pa.struct({"c": pa.int64()})})}))
    ['a.b', 'a.b.c']
    """
    found: dict[str, pa.DataType] = {}
    waiting = [(name, kind) for name, kind in attributes.items() if "." not in name]
    while waiting:
        path, kind = waiting.pop()
        for field in kind if pa.types.is_struct(kind) else ():
            waiting.append((f"{path}.{field.name}", field.type))
            found.update(field_types(attributes, [f"{path}.{field.name}"]))
    return found


def fields_among(attributes: Mapping[str, pa.DataType]) -> set[str]:
    """Those attributes that are fields inside of others, by their paths."""
    paths = {name for name in attributes if "." in name}
    others = {name: kind for name, kind in attributes.items() if name not in paths}
    return set(field_types(others, paths))


def with_fields(table: pa.Table, paths: Iterable[str]) -> pa.Table:
    """A table with columns for those paths that lead to fields inside of its columns."""
    paths = [path for path in paths if "." in path]
    if not paths:
        return table
    attributes = dict(zip(table.schema.names, table.schema.types, strict=True))
    for path in paths:
        kind = field_type(attributes, path)
        if kind is not None:
            table = table.append_column(path, field_of(table, path).cast(kind))
            attributes[path] = kind
    return table


def field_of(table: pa.Table | pa.RecordBatch, path: str) -> Any:
    """The values of a field inside of a column; where the struct is NULL, so is the field."""
    root, *names = path.split(".")
    return pc.struct_field(table.column(root), names)


def family(kind: pa.DataType) -> str:
    """What may stand for what: values of one family convert where they fit.

    >>> family(pa.int8()) == family(pa.float64()), family(pa.list_(pa.string())) == family(pa.list_(pa.large_string()))
    (True, True)
    """
    types = pa.types
    if types.is_dictionary(kind):
        return family(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind):
        return "bytes"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_timestamp(kind):
        return "zoned time" if kind.tz else "time"
    if types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {family(field.type)}' for field in kind)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"list<{family(kind.value_type)}>"
    return str(kind)


def time_hint(name: str, kind: pa.DataType) -> str:
    """What to do about a column that is to order the stream and holds no times; empty where nothing is known to help."""
    if family(kind) == "string":
        told = "; make times of its texts first: df['{0}'] = pd.to_datetime(df['{0}']), cast('timestamp') on Spark"
        return told.format(name) + ", or in Arrow a cast to timestamp('us')"
    if pa.types.is_null(kind):
        return "; it is NULL throughout"
    return ""


def text_hint(name: str, kind: pa.DataType) -> str:
    """What to do about a column that is to hold event types or names of streams, and holds no texts."""
    if pa.types.is_integer(kind):
        return f"; make texts of its numbers first: df['{name}'] = df['{name}'].astype(str), and name a type in backticks: `3`"
    return "; make texts of it first"


def unified(kinds: Iterable[pa.DataType]) -> pa.DataType | None:
    """A type for values of several types; ``None``: there is none.

    >>> unified([pa.null(), pa.int32(), pa.float64()]), unified([pa.timestamp("s", "UTC"), pa.timestamp("us", "CET")])
    (DataType(double), TimestampType(timestamp[us, tz=UTC]))
    """
    found = pa.null()
    for kind in kinds:
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_null(found):
            found = plain
        elif pa.types.is_timestamp(found) and pa.types.is_timestamp(plain) and bool(found.tz) == bool(plain.tz):
            units = ("s", "ms", "us", "ns")
            found = pa.timestamp(max(found.unit, plain.unit, key=units.index), found.tz)
        elif pa.types.is_integer(found) and pa.types.is_decimal128(plain):
            found = _with_integers(plain)
        elif pa.types.is_decimal128(found) and pa.types.is_integer(plain):
            found = _with_integers(found)
        elif found != plain and not pa.types.is_null(plain):
            try:
                both = [pa.schema([("", one)]) for one in (found, plain)]
                found = pa.unify_schemas(both, promote_options="permissive").field(0).type
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
                return None
    return found


def as_key(column: Any, kind: pa.DataType, name: str) -> Any:
    """A column of a key as the type that its columns have in common; an integer stays the number that it is.

    Raises
    ------
    DataError
        An integer is none of the numbers of floating point, or a value none of that type.
    """
    own = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_floating(kind) and pa.types.is_integer(own)):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"the key '{name}' is compared as {kind}, which does not hold every {own}: give its columns one type"
            ) from error
    whole = column.cast(own)
    found = whole.cast(kind, safe=False)
    other = pc.invert(pc.equal(found.cast(own, safe=False), whole))
    if pc.any(other).as_py():
        raise DataError(
            f"the key '{name}' compares integers with {kind}, which has no {whole.filter(other)[0]}: "
            "give its columns one type, such as int64 or a decimal"
        )
    return found


def _with_integers(kind: pa.DataType) -> pa.DataType:
    """A decimal type for integers of 64 bits as well, as far as there is room."""
    return pa.decimal128(min(38, max(kind.precision - kind.scale, 19) + kind.scale), kind.scale)


def wider(
    table: pa.Table, known: Mapping[str, pa.DataType], unknown: Collection[str], fixed: Collection[str | None]
) -> dict[str, pa.DataType]:
    """The columns of a batch that do not fit the types that batches before it told, with types that do for all of them.

    Parameters
    ----------
    table
        The batch.
    known
        The types so far of the columns that are read.
    unknown
        Columns that had nothing but NULL: any type will do.
    fixed
        Columns whose type cannot change any more.
    """
    found = {}
    for name, kind in known.items():
        given = table.schema.field(name).type if name in table.column_names else kind
        if given == kind or pa.types.is_null(given):
            continue
        if name in unknown:
            found[name] = given
        elif name not in fixed and family(kind) == family(given) == "number" and not _fits(table.column(name), kind):
            both = unified([kind, given])
            if both not in (None, kind):
                found[name] = both
    return found


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True
