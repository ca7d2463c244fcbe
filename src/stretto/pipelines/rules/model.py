"""The tables and keys of a rule file, as Pydantic models."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stretto.errors import OptionError
from stretto.matching.pattern_set.throttle import number_of
from stretto.matching.reorder.spans import check_span
from stretto.pipelines.model import Columns, Name, Table, Text


def _time(value: Any) -> str:
    """A time as text; TOML has values for dates and times, and a table for numbers."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not _is_time(value):
        raise PydanticCustomError("time", 'expected a time such as "2026-01-31T00:00:00Z", or a number')
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _is_time(value: str | int | float) -> bool:
    """Whether there is a type of times that has the value."""
    number = number_of(value)
    if not isinstance(number, str):
        return math.isfinite(number)
    for unit, zone in (("us", None), ("us", "UTC"), ("ns", None), ("ns", "UTC")):
        with contextlib.suppress(pa.ArrowInvalid):
            pa.scalar(number).cast(pa.timestamp(unit, zone))
            return True
    return False


def _span(value: Any) -> str:
    """A span of time as text."""
    try:
        found = check_span(number_of(value), "every")
    except OptionError:
        found = 0
    if not found:
        raise PydanticCustomError("span", 'expected a span of time such as "10 minutes" or "inf", or a number above 0')
    return str(value)


def _count(value: Any) -> Any:
    if isinstance(value, bool) or (isinstance(value, int) and value >= 0):
        return value
    raise PydanticCustomError("count", "expected true, false, or how many alerts")


#: A time of events, as text.
Time = Annotated[str, BeforeValidator(_time)]

#: A span of time above 0, as text.
Span = Annotated[str, BeforeValidator(_span)]


class Test(Table):
    """``[[rule.test]]``: events, and whether the rule matches them, or how often."""

    __test__ = False  # pytest

    name: Text | None = None
    matches: Annotated[int | bool, BeforeValidator(_count)] = True
    events: list[dict[str, Any]]


class Rule(Table):
    """``[[rule]]``, or a row of a table."""

    id: Name
    query: Text
    language: Literal["ceql", "sase", "eql", "afa", "sql"] | None = None
    title: Text | None = None
    description: Text | None = None
    severity: Literal["info", "low", "medium", "high", "critical"] = "medium"
    tags: Annotated[list[Text], Field(default_factory=list)]
    every: Span | None = None
    since: Time | None = None
    until: Time | None = None
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
