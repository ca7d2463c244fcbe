"""From a file to a :class:`Plan`: TOML, then the models, with every mistake at its line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stretto.errors import suggestion
from stretto.pipelines import model
from stretto.pipelines.documents import File, Form, PipelineError, Problem, in_order, read, shown, validated
from stretto.pipelines.places import Path as KeyPath


@dataclass(frozen=True)
class Plan:
    """A pipeline that is well formed. Made by :func:`stretto.pipelines.load`."""

    file: File
    pipeline: model.Pipeline
    sources: Sequence[model.Source]
    events: model.Events
    queries: Sequence[model.Query]
    rules: Sequence[model.Rules]
    sinks: Sequence[model.Sink]
    #: Settings of Spark by their full names.
    spark: Mapping[str, str]

    @property
    def name(self) -> str:
        """The pipeline's name: that of the file unless it says another."""
        return self.pipeline.name or Path(self.file.name).stem

    @property
    def streaming(self) -> bool:
        """Whether the pipeline reads a stream, and not a batch."""
        return self.pipeline.mode == "streaming"

    @property
    def asked(self) -> list[model.Asked]:
        """What is asked of the events: the queries, then the rules."""
        return [*self.queries, *self.rules]

    def where(self, name: str) -> str:
        """The file and line in which a query, rules or a source of a name stand, with a colon behind; of other names the file."""
        for table, parts in (("query", self.queries), ("rules", self.rules), ("source", self.sources)):
            for number, part in enumerate(parts):
                if name == (part.name or "events"):
                    return f"{self.file.name}, {self.file.where((table, number))}: "
        return f"{self.file.name}: "

    def locate(self, path: str) -> str:
        """A path of the file, from where the file lies; URLs (``s3a://…``) stay as they are."""
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", path):
            return path
        return str(self.file.folder.resolve() / Path(path).expanduser())

    def sinks_of(self, asked: model.Asked) -> list[model.Sink]:
        """The sinks that the matches of a query or of rules go to, in its order."""
        if asked.sinks is None:
            aside = {self.events.late_sink, self.events.bad_records_sink}
            return [sink for sink in self.sinks if sink.name not in aside]
        by_name = {sink.name: sink for sink in self.sinks}
        return [by_name[name] for name in asked.sinks]

    def sink(self, name: str) -> model.Sink:
        """The sink of that name."""
        return next(sink for sink in self.sinks if sink.name == name)


FORM = Form(
    "a pipeline",
    model.REPEATED,
    {"pipeline": model.Pipeline, "events": model.Events, "query": model.Query, "rules": model.Rules},
    {
        "source": "it says where events come from",
        "events": 'it says which column is the time: time = "…"',
        "sink": "it says where matches go",
    },
)


def parse(path: str | Path) -> Plan:
    """Read a file into models.

    Raises
    ------
    PipelineError
        It is no TOML, or a key is missing, unknown or of the wrong type. All such mistakes are told at once.
    OptionError
        There is no such file.
    """
    file, document = read(Path(path), FORM)
    problems: list[Problem] = []
    tables = validated(model.Document, document, (), file, problems)
    sources = _by_kind("source", model.SOURCES, document, file, problems)
    sinks = _by_kind("sink", model.SINKS, document, file, problems)
    spark = _settings(document.get("spark"), file, problems)
    if not (document.get("query") or document.get("rules")):
        told = "there is no table [[query]] and no table [[rules]]"
        problems.append(file.problem(("query",), told, "they say what to look for"))
    if problems or tables is None:
        raise PipelineError(in_order(problems, file))
    return Plan(file, tables.pipeline, sources, tables.events, tables.query, tables.rules, sinks, spark)


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
            told = f"{label} kind = {shown(kind)}: expected one of {known}"
            problems.append(file.problem((*path, "kind"), told, hint if hint and hint.startswith("did") else None))
        elif (made := validated(kinds[kind], table, path, file, problems)) is not None:
            found.append(made)
    return found


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
            told = f"{file.label(path)} = {shown(value)}: expected a text, a number, true or false"
            problems.append(file.problem(path, told))

    if isinstance(table, dict):
        visit(table, ("spark",))
    return found
