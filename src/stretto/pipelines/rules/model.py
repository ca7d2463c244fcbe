"""The tables and keys of a rule file, as Pydantic models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from stretto.pipelines.model import Columns, Name, Table, Text

#: How serious an alert is, from the least.
SEVERITIES = ("info", "low", "medium", "high", "critical")


class Test(Table):
    """``[[rule.test]]``: events, and whether the rule matches them, or how often."""

    __test__ = False  # pytest

    name: Text | None = None
    matches: Annotated[int, Field(ge=0)] | bool = True
    events: list[dict[str, Any]]


class Rule(Table):
    """``[[rule]]``."""

    id: Name
    query: Text
    language: Literal["ceql", "sase", "eql"] | None = None
    title: Text | None = None
    description: Text | None = None
    severity: Literal["info", "low", "medium", "high", "critical"] = "medium"
    tags: Annotated[list[Text], Field(default_factory=list)]
    every: Text | Annotated[int, Field(ge=1)] | None = None
    enabled: bool = True
    test: Annotated[list[Test], Field(default_factory=list)]


class Events(Table):
    """``[events]``: the roles of columns, and the types of those that tests leave out."""

    time: Text
    type: str = "type"
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    sequence: Text | None = None
    stream: Text | None = None
    columns: Columns | None = None


class Document(Table):
    """A whole file; rules are checked one by one, so that a wrong one leaves the others."""

    rule: Annotated[list[dict[str, Any]], Field(default_factory=list)]
    events: Events | None = None
