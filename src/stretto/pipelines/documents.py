"""TOML files of ours as models: every mistake at its line.

What is wrong with a pipeline file, each with its place::

pipeline.toml, line 7, column 1: [source] has no key 'pth'
  pth = "trades.csv"
  ^^^
hint: did you mean 'path'?
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, get_args

from pydantic import BaseModel, ValidationError

from stretto.errors import OptionError, QueryError, Span, nearest, suggestion
from stretto.pipelines.places import Path as KeyPath
from stretto.pipelines.places import Place, find_places, offsets


@dataclass(frozen=True)
class Problem:
    """One mistake.

    Parameters
    ----------
    file
        The file that it is in, as the user named it.
    message
        What is wrong, in one line.
    text, span
        The file's text and where in it, if the mistake has a place.
    hint
        What to try instead.
    in_query
        Whether a query's text is wrong, and not the pipeline around it.
    part
        Where in the file ``text`` stands, where that is not the whole file: the row of a table.
    """

    file: str
    message: str
    text: str | None = None
    span: Span | None = None
    hint: str | None = None
    in_query: bool = False
    part: str | None = None

    @property
    def line(self) -> int | None:
        """1-based line of the mistake."""
        return self._drawn.line

    @property
    def column(self) -> int | None:
        """1-based column of the mistake, in characters."""
        return self._drawn.column

    @property
    def _drawn(self) -> QueryError:
        """Errors in queries know how to draw themselves."""
        return QueryError(self.message, text=self.text, span=self.span, hint=self.hint)

    def __str__(self) -> str:
        where = self.file if self.part is None else f"{self.file}, {self.part}"
        return f"{where}{': ' if self.line is None else ', '}{self._drawn}"


class PipelineError(OptionError):
    """A pipeline file that cannot run; ``problems`` has all that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n\n".join(map(str, self.problems)))

    @property
    def in_queries(self) -> bool:
        """Whether only texts of queries are wrong."""
        return all(problem.in_query for problem in self.problems)


class Form(NamedTuple):
    """What a kind of file is like.

    Parameters
    ----------
    name
        What such a file is, with its article.
    repeated
        The tables that may come more than once.
    homes
        Tables, by name: a key that stands in a wrong one may be a key of these.
    purposes
        What tables are for, by name, where they are missing.
    """

    name: str
    repeated: tuple[str, ...] = ()
    homes: Mapping[str, type[BaseModel]] = {}
    purposes: Mapping[str, str] = {}


@dataclass(frozen=True)
class File:
    """The text of a TOML file, and where things stand in it."""

    #: As the user named it.
    name: str
    #: Paths in the file are relative to this.
    folder: Path
    text: str
    form: Form
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
        repeated = name in self.form.repeated
        table = f"[[{name}]]" if repeated and name not in self.once else f"[{name}]"
        keys = ""
        for part in path[2 if repeated else 1 :]:
            keys += f"[{part}]" if isinstance(part, int) else f".{part}" if keys else str(part)
        return f"{table} {keys}" if keys else table

    def where(self, path: KeyPath) -> str:
        """In which line a value stands."""
        place = self.place(path)
        line = 1 if place is None or place.span is None else self.text.count("\n", 0, place.span.start) + 1
        return f"line {line}"

    def text_at(self, path: KeyPath, value: str) -> Text:
        """The text that a key has."""
        place = self.place(path)
        assert place is not None
        assert place.value is not None
        found, at = offsets(self.text, place.value)
        return Text(value, self.name, self.text, at if found == value else range(1))


def read(path: Path, form: Form) -> tuple[File, dict[str, Any]]:
    """Read a file; repeated tables are lists, also those that are written once.

    Raises
    ------
    PipelineError
        It is no TOML.
    OptionError
        There is no such file, or it cannot be read.
    """
    name = str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise OptionError(f"no such file: {name}") from error
    except IsADirectoryError as error:
        raise OptionError(f"{name} is a folder: name the TOML file of {form.name}") from error
    except OSError as error:
        raise OptionError(f"{name} cannot be read: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PipelineError([Problem(name, f"line {line} is not UTF-8 text ({error.reason})")]) from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PipelineError([_syntax_problem(name, text, str(error))]) from error
    except RecursionError as error:
        raise PipelineError([Problem(name, "is nested too deeply")]) from error
    once = frozenset(name for name in form.repeated if isinstance(document.get(name), dict))
    listed = {name: [value] if name in once else value for name, value in document.items()}
    return File(name, path.parent, text, form, find_places(text), once), listed


@dataclass(frozen=True)
class Text:
    """A text, and how a place in it is a place in the file that holds it."""

    text: str
    file: str
    whole: str
    #: Where in ``whole`` each character of ``text`` is, and the end.
    at: list[int] | range
    #: Where in the file ``whole`` stands; ``None``: it is the file.
    part: str | None = None

    def span(self, span: Span | None) -> Span:
        """A span of the text as one of the file; what has no place is at the beginning."""
        if span is None:
            return Span(self.at[0], self.at[0] + 1)
        last = len(self.at) - 1
        begin = self.at[min(span.start, last)]
        return Span(begin, max(begin + 1, self.at[min(span.end, last)]))


def _syntax_problem(name: str, text: str, message: str) -> Problem:
    """``tomllib`` tells the place in its text."""
    found = re.fullmatch(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message, re.DOTALL)
    what = found[1] if found else message
    end = len(text.rstrip("\n"))
    at = end
    if found and found[2]:
        lines = text.split("\n")
        at = min(sum(len(line) + 1 for line in lines[: int(found[2]) - 1]) + int(found[3]) - 1, end)
    return Problem(name, f"not TOML: {what}", text, Span(at, at + 1))


def validated(kind: type[Any], value: Any, path: KeyPath, file: File, problems: list[Problem]) -> Any:
    """A model of ``value``, or ``None`` with problems added."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        found = [(one, (*path, *one["loc"])) for one in error.errors(include_url=False)]
    unknown = [place for one, place in found if one["type"] == "extra_forbidden"]
    for one, place in found:
        table, key = place[:-1], str(place[-1] if place else "")
        if one["type"] == "extra_forbidden":
            problems.append(_unknown_key(place, _model_at(kind, table[len(path) :]), file))
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
        return file.problem(place, f"there is no table {table}", file.form.purposes[str(place[0])])
    return file.problem(place[:-1], f"{file.label(place[:-1])} needs '{place[-1]}'", at_key=True)


def _unknown_key(place: KeyPath, kind: type[BaseModel], file: File) -> Problem:
    key = str(place[-1])
    if len(place) == 1:
        hint = suggestion(key, kind.model_fields, kind="table")
        return file.problem(place, f"{file.form.name} has no table '{key}'", hint, at_key=True)
    hint = suggestion(key, kind.model_fields, kind="key")
    homes = [f"[{home}]" for home, there in file.form.homes.items() if key in there.model_fields and there is not kind]
    if homes and not (hint and hint.startswith("did")):
        hint = f"'{key}' is a key of {' and '.join(homes)}"
    return file.problem(place, f"{file.label(place[:-1])} has no key '{key}'", hint, at_key=True)


def _model_at(kind: type[BaseModel], path: KeyPath) -> type[BaseModel]:
    """The model of a table inside of one of this model."""
    for name in path:
        if isinstance(name, str):
            kind = _model_in(kind.model_fields[name].annotation) or kind
    return kind


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_model_in(part) for part in get_args(annotation))
    return next((one for one in found if one is not None), None)


def _wrong_value(what: str, error: Any) -> tuple[str, str | None]:  # noqa: PLR0911 - one kind of mistake after the other
    """Message and hint for a value that its key cannot have."""
    given, context = shown(error["input"]), error.get("ctx", {})
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


def shown(value: Any) -> str:
    """A value as TOML would write it, and not all of a long one."""
    if isinstance(value, dict):
        return "{…}"
    if isinstance(value, list):
        return "[…]" if value else "[]"
    if isinstance(value, bool):
        return str(value).lower()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def in_order(problems: Sequence[Problem], file: File) -> list[Problem]:
    """Problems as they come in the file: first those without a place, last those in files of queries."""

    def place(problem: Problem) -> tuple[bool, int]:
        return problem.file != file.name, problem.span.start if problem.span else -1

    return sorted(problems, key=place)
