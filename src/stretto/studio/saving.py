"""A query of the studio as a file: a pipeline, a rule, a script in Python, or the query alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from stretto.errors import OptionError
from stretto.matching.input.files import kind_of
from stretto.studio.folder import FOLLOWED
from stretto.studio.topic import Topic
from stretto.studio.workbench import Roles

#: What a query can be saved as, by the ending of the file.
KINDS = {"pipeline": ".toml", "rule": ".toml", "python": ".py", "query": ".txt"}


def written(kind: str, text: str, roles: Roles, data: str, schema: pa.Schema, topic: Topic | None = None) -> str:
    """The file's text.

    Parameters
    ----------
    kind
        One of :data:`KINDS`.
    text, roles
        The query and the roles of the columns.
    data
        The path of the events, as the file shall say it.
    schema
        Their columns.
    topic
        What ``data`` is the address of, where it is none of a file.

    Raises
    ------
    OptionError
        There is no such kind, or it lacks something that the page did not say; the message says what.
    """
    if kind not in KINDS:
        raise OptionError(f"'{kind}' is nothing that a query is saved as: choose one of {', '.join(KINDS)}")
    if topic is not None and kind == "python":
        raise OptionError("a topic is read on Spark, not by stretto.match: save the query as a pipeline")
    writers: dict[str, Callable[[str, Roles, str, pa.Schema], str]] = {
        "pipeline": _pipeline if topic is None else partial(_streaming, topic),
        "rule": _rule,
        "python": _python,
        "query": lambda text, *_: f"{text.rstrip()}\n",
    }
    return writers[kind](text, roles, data, schema)


def _streaming(topic: Topic, text: str, roles: Roles, data: str, schema: pa.Schema) -> str:
    """A pipeline that goes on with what comes into a topic. How late events may be is for the reader to say."""
    if roles.time_unit is None and roles.time is not None and pa.types.is_integer(schema.field(roles.time).type):
        raise OptionError(
            f"a pipeline that streams asks what its numbers of time are: choose the unit of '{roles.time}'"
        )
    name = _name(topic.name)
    lines = [
        "[pipeline]",
        f"name = {_quoted(name)}",
        'mode = "streaming"',
        f"checkpoint = {_quoted(f'checkpoints/{name}')}",
    ]
    lines += ["", "[source]", 'kind = "kafka"', f"servers = {_quoted(topic.servers)}", f"topic = {_quoted(topic.name)}"]
    if topic.starting != "earliest":
        lines.append(f"starting = {_quoted(topic.starting)}")
    return "\n".join([*lines, "", *_columns(schema), "", *_body(text, roles, ['disorder = "1 minute"'])])


def _pipeline(text: str, roles: Roles, data: str, schema: pa.Schema) -> str:
    kind = kind_of(data)
    if kind not in ("parquet", "csv", "json"):
        raise OptionError(f"pipelines read Parquet, CSV and JSON files, and '{data}' is none: save it as Python")
    lines = ["[pipeline]", f"name = {_quoted(_name(data))}", "", "[source]", f"kind = {_quoted(kind)}"]
    lines.append(f"path = {_quoted(data)}")
    if kind != "parquet":
        lines += ["", *_columns(schema)]
    return "\n".join([*lines, "", *_body(text, roles)])


def _columns(schema: pa.Schema) -> list[str]:
    return ["[source.columns]", *(f"{_quoted(one.name)} = {_quoted(_spark_type(one))}" for one in schema)]


def _body(text: str, roles: Roles, more: Sequence[str] = ()) -> list[str]:
    """What is behind the source, with ``more`` about the events."""
    lines = ["[events]", *_events(roles, "a pipeline"), *more, "", "[[query]]", 'name = "matches"']
    lines += [f"text = {_lines(text)}", *_language(roles), "", "[[sink]]", 'name = "shown"', 'kind = "console"', ""]
    return lines


def _rule(text: str, roles: Roles, data: str, schema: pa.Schema) -> str:
    lines = ["[events]", *_events(roles, "a rule"), "", "[[rule]]", f"id = {_quoted(_name(data))}"]
    return "\n".join([*lines, f"query = {_lines(text)}", *_language(roles), ""])


def _python(text: str, roles: Roles, data: str, schema: pa.Schema) -> str:
    named = {"type": roles.type, "time": roles.time, "stream": roles.stream, "time_unit": roles.time_unit}
    given: dict[str, str | None] = {
        name: value for name, value in named.items() if value is not None and (name, value) != ("type", "type")
    }
    if roles.type is None:
        given["type"] = None
    if roles.language is not None:
        given["language"] = roles.language
    lines = ["import stretto", "", "QUERY = (", *(f"    {line!r}" for line in text.splitlines(keepends=True)), ")", ""]
    options = "".join(f", {name}={value!r}" for name, value in given.items())
    lines += [f"for match in stretto.match(QUERY, {data!r}{options}).to_pylist():", "    print(match)", ""]
    return "\n".join(lines)


def _events(roles: Roles, what: str) -> list[str]:
    if roles.time is None:
        raise OptionError(f"{what} needs a column of time: choose it")
    named = {"type": roles.type or "", "time": roles.time, "stream": roles.stream, "time_unit": roles.time_unit}
    return [
        f"{name} = {_quoted(value)}"
        for name, value in named.items()
        if value is not None and (name, value) != ("type", "type")
    ]


def _language(roles: Roles) -> list[str]:
    return [] if roles.language is None else [f"language = {_quoted(roles.language)}"]


def _quoted(text: str) -> str:
    """A text of TOML: what JSON escapes, TOML reads alike; only DEL it does not take as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _lines(text: str) -> str:
    """The same, with the lines of a text as they are, where TOML can say them."""
    plain = text.replace("\n", "").replace("\t", "").isprintable()
    if "\n" not in text or not plain or "'''" in text or text.endswith("'"):
        return _quoted(text)
    return f"'''\n{text}'''"


def _name(data: str) -> str:
    """A name that pipelines and rules take."""
    path = Path(data)
    stem = (path.parent if path.name == FOLLOWED else path).name.partition(".")[0]
    made = "".join(one if one.isascii() and (one.isalnum() or one in "_-") else "_" for one in stem)
    return made.lstrip("-") or "query"


def _spark_type(field: pa.Field) -> str:
    """The type as Spark SQL writes it."""
    kind = field.type
    simple = {
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "int64": "bigint",
        "float": "float",
        "double": "double",
        "string": "string",
        "large_string": "string",
        "bool": "boolean",
        "date32[day]": "date",
        "null": "string",
    }
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if str(kind) not in simple:
        raise OptionError(
            f"column '{field.name}' is {kind}, which a pipeline's columns do not say here: save it as Python"
        )
    return simple[str(kind)]
