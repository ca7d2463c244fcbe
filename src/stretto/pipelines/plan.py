"""From a file to a :class:`Plan`: TOML, then the models, with every mistake at its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from stretto.errors import OptionError, Span, nearest, suggestion
from stretto.pipelines import model
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.places import Place, find_places
from stretto.pipelines.problems import PipelineError, Problem


@dataclass(frozen=True)
class File:
    """The text of a pipeline file, and where things stand in it."""

    #: As the user named it.
    name: str
    #: Paths in the file are relative to this.
    folder: Path
    text: str
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    #: Which of the repeated tables are written once, so without an index.
    once: frozenset[str] = frozenset()

    def place(self, path: KeyPath) -> Place | None:
        """Where a key stands; ``path`` has an index for every repeated table."""
        if len(path) > 1 and path[0] in self.once and path[1] == 0:
            path = (path[0], *path[2:])
        return self.places.get(path)

    def problem(self, path: KeyPath, message: str, hint: str | None = None, *, at_key: bool = False) -> Problem:
        """A mistake at a value (or its key), or at the innermost table around it that is in the file."""
        span = None
        for length in range(len(path), 0, -1):
            found = self.place(path[:length])
            if found is not None and (span := found.key if at_key and found.key else found.span):
                break
        return Problem(self.name, message, self.text, span, hint)

    def label(self, path: KeyPath) -> str:
        """A key with its table, as they are written: ``[events]``, ``[[query]] sinks[0]``, ``[source] columns.ts``."""
        name = str(path[0])
        repeated = name in model.REPEATED
        table = f"[[{name}]]" if repeated and name not in self.once else f"[{name}]"
        keys = ""
        for part in path[2 if repeated else 1 :]:
            keys += f"[{part}]" if isinstance(part, int) else f".{part}" if keys else str(part)
        return f"{table} {keys}" if keys else table


@dataclass(frozen=True)
class Plan:
    """A pipeline that is well formed. Made by :func:`stretto.pipelines.load`."""

    file: File
    pipeline: model.Pipeline
    sources: Sequence[model.Source]
    events: model.Events
    queries: Sequence[model.Query]
    sinks: Sequence[model.Sink]
    #: Settings of Spark by their full names.
    spark: Mapping[str, str]

    @property
    def name(self) -> str:
        """The pipeline's name: that of the file unless it says another."""
        return self.pipeline.name or Path(self.file.name).stem

    @property
    def streaming(self) -> bool:
        return self.pipeline.mode == "streaming"

    def locate(self, path: str) -> str:
        """A path of the file, from where the file lies; URLs (``s3a://…``) stay as they are."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            return path
        return str(self.file.folder.resolve() / Path(path).expanduser())

    def sinks_of(self, query: model.Query) -> list[model.Sink]:
        """The sinks that a query's matches go to, in its order."""
        if query.sinks is None:
            aside = {self.events.late_sink, self.events.bad_records_sink}
            return [sink for sink in self.sinks if sink.name not in aside]
        by_name = {sink.name: sink for sink in self.sinks}
        return [by_name[name] for name in query.sinks]

    def sink(self, name: str) -> model.Sink:
        """The sink of that name."""
        return next(sink for sink in self.sinks if sink.name == name)


def parse(path: str | Path) -> Plan:
    """Read a file into models.

    Raises
    ------
    PipelineError
        It is no TOML, or a key is missing, unknown or of the wrong type. All such mistakes are told at once.
    OptionError
        There is no such file.
    """
    file, document = _read(Path(path))
    document, once = _listed(document)
    file = File(file.name, file.folder, file.text, find_places(file.text), once)
    problems: list[Problem] = []
    tables = _validated(model.Document, document, (), file, problems)
    sources = _by_kind("source", model.SOURCES, document, file, problems)
    sinks = _by_kind("sink", model.SINKS, document, file, problems)
    spark = _settings(document.get("spark"), file, problems)
    if problems or tables is None:
        raise PipelineError(in_order(problems, file))
    return Plan(file, tables.pipeline, sources, tables.events, tables.query, sinks, spark)


def in_order(problems: Sequence[Problem], file: File) -> list[Problem]:
    """Problems as they come in the file: first those without a place, last those in files of queries."""

    def place(problem: Problem) -> tuple[bool, int]:
        return problem.file != file.name, problem.span.start if problem.span else -1

    return sorted(problems, key=place)


def _read(path: Path) -> tuple[File, dict[str, Any]]:
    name = str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise OptionError(f"no such file: {name}") from error
    except IsADirectoryError as error:
        raise OptionError(f"{name} is a folder: name the pipeline's TOML file") from error
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PipelineError([Problem(name, f"line {line} is not UTF-8 text ({error.reason})")]) from error
    file = File(name, path.parent, text)
    try:
        return file, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PipelineError([_syntax_problem(file, str(error))]) from error
    except RecursionError as error:
        raise PipelineError([Problem(name, "is nested too deeply")]) from error


def _syntax_problem(file: File, message: str) -> Problem:
    """``tomllib`` tells the place in its text."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    what = found[1] if found else message
    end = len(file.text.rstrip("\n"))
    at = end
    if found and found[2]:
        lines = file.text.split("\n")
        at = min(sum(len(line) + 1 for line in lines[: int(found[2]) - 1]) + int(found[3]) - 1, end)
    return Problem(file.name, f"not TOML: {what}", file.text, Span(at, at + 1))


def _listed(document: dict[str, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """Repeated tables as lists, also those that are written once."""
    once = frozenset(name for name in model.REPEATED if isinstance(document.get(name), dict))
    return {name: [value] if name in once else value for name, value in document.items()}, once


def _by_kind(
    name: str, kinds: Mapping[str, type[Any]], document: Mapping[str, Any], file: File, problems: list[Problem]
) -> list[Any]:
    """The models of sources or sinks, each by its ``kind``."""
    found = []
    tables = document.get(name)
    for number, table in enumerate(tables if isinstance(tables, list) else []):
        path = (name, number)
        if not isinstance(table, dict):
            continue  # the document's model has told
        label, kind = file.label(path), table.get("kind")
        known = ", ".join(kinds)
        if "kind" not in table:
            problems.append(file.problem(path, f"{label} needs 'kind'", f"one of {known}", at_key=True))
        elif not isinstance(kind, str) or kind not in kinds:
            hint = suggestion(kind, kinds) if isinstance(kind, str) else None
            told = f"{label} kind = {_shown(kind)}: expected one of {known}"
            problems.append(file.problem((*path, "kind"), told, hint if hint and hint.startswith("did") else None))
        elif (made := _validated(kinds[kind], table, path, file, problems)) is not None:
            found.append(made)
    return found


def _validated(kind: type[Any], value: Any, path: KeyPath, file: File, problems: list[Problem]) -> Any:
    """A model of ``value``, or ``None`` with problems added."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        found = [(one, (*path, *one["loc"])) for one in error.errors(include_url=False)]
    unknown = [place for one, place in found if one["type"] == "extra_forbidden"]
    for one, place in found:
        table, key = place[:-1], str(place[-1] if place else "")
        if one["type"] == "extra_forbidden":
            problems.append(_unknown_key(place, kind if path else _model_at(table), file))
        elif one["type"] == "missing":
            # A key that is misspelt is not missing as well.
            if not any(other[:-1] == table and nearest(str(other[-1]), [key]) for other in unknown):
                problems.append(_missing_key(place, file))
        else:
            problems.append(file.problem(place, *_wrong_value(file.label(place), one)))
    return None


def _missing_key(place: KeyPath, file: File) -> Problem:
    if len(place) == 1:
        table = "[source]" if place == ("source",) else file.label(place)
        return file.problem(place, f"there is no table {table}", _WHAT_FOR[str(place[0])])
    return file.problem(place[:-1], f"{file.label(place[:-1])} needs '{place[-1]}'", at_key=True)


_WHAT_FOR = {
    "source": "it says where events come from",
    "events": 'it says which column is the time: time = "…"',
    "query": "it says what to look for",
    "sink": "it says where matches go",
}


def _unknown_key(place: KeyPath, kind: type[BaseModel], file: File) -> Problem:
    key = str(place[-1])
    if len(place) == 1:
        hint = suggestion(key, kind.model_fields, kind="table")
        return file.problem(place, f"a pipeline has no table '{key}'", hint, at_key=True)
    hint = suggestion(key, kind.model_fields, kind="key")
    homes = [f"[{home}]" for home, there in _TABLES.items() if key in there.model_fields and there is not kind]
    if homes and not (hint and hint.startswith("did")):
        hint = f"'{key}' is a key of {' and '.join(homes)}"
    return file.problem(place, f"{file.label(place[:-1])} has no key '{key}'", hint, at_key=True)


_TABLES: Mapping[str, type[BaseModel]] = {"pipeline": model.Pipeline, "events": model.Events, "query": model.Query}


def _model_at(table: KeyPath) -> type[BaseModel]:
    """The model of a table of the document."""
    if not table:
        return model.Document
    return _TABLES[str(table[0])]


def _wrong_value(what: str, error: Any) -> tuple[str, str | None]:  # noqa: PLR0911 - one kind of mistake after the other
    """Message and hint for a value that its key cannot have."""
    given, context = _shown(error["input"]), error.get("ctx", {})
    wrong = f"{what} = {given}"
    match error["type"]:
        case "literal_error":
            return _no_choice(wrong, context["expected"], error["input"])
        case "string_type":
            return f"{wrong}: expected a text", None
        case "bool_type":
            return f"{wrong}: expected true or false", None
        case "int_type":
            return f"{wrong}: expected a whole number", None
        case "greater_than_equal":
            return f"{wrong}: expected {context['ge']} or more", None
        case "string_too_short":
            return f"{wrong}: the text is empty", None
        case "string_pattern_mismatch":
            return f"{wrong}: a name has letters, digits, '_', '.' and '-' only", None
        case "list_type":
            return f"{wrong}: expected a {'list' if ' ' in what else 'table'}", None
        case "too_short":
            return f"{what}: the {'table' if isinstance(error['input'], dict) else 'list'} is empty", None
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"{wrong}: expected a table", None
    return f"{wrong}: {error['msg']}", None


def _no_choice(wrong: str, expected: str, given: Any) -> tuple[str, str | None]:
    choices = re.findall(r"'([^']*)'", expected)
    hint = suggestion(given, choices) if isinstance(given, str) else None
    return f"{wrong}: expected {expected}", hint if hint and hint.startswith("did") else None


def _shown(value: Any) -> str:
    """A value as TOML would write it, and not all of a long one."""
    if isinstance(value, dict):
        return "{…}"
    if isinstance(value, list):
        return "[…]" if value else "[]"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _settings(table: Any, file: File, problems: list[Problem]) -> dict[str, str]:
    """``[spark]``, where dots in keys nest: by full names."""
    found: dict[str, str] = {}

    def visit(value: Any, path: KeyPath) -> None:
        if isinstance(value, dict):
            for key, below in value.items():
                visit(below, (*path, key))
        elif isinstance(value, bool | int | float | str):
            name = ".".join(map(str, path[1:]))
            name = name if name.startswith("spark.") else f"spark.{name}"
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            told = f"{file.label(path)} = {_shown(value)}: expected a text, a number, true or false"
            problems.append(file.problem(path, told))

    if isinstance(table, dict):
        visit(table, ("spark",))
    return found
