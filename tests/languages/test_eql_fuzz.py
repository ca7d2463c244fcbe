"""EQL under random input: any text is a query or a QueryError that shows its place."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from stretto.errors import QueryError
from stretto.languages.eql import parse
from stretto.query.eql import EqlQuery
from tests.conftest import cases
from tests.languages.mutating import check_place, mutations

QUERIES = [
    'process where process.name : ("cmd.exe", "p*") and not ?user.id in ("S-1-5-18", "S-1-5-19") and process.args_count >= 2 // why',
    'sequence by host.id, ?user.id with maxspan=90s [file where file.extension == "exe"] by file.path with runs=3 '
    "![network where destination.port in (80, 443)] by file.path [any where length(process.name) > 1] by process.executable "
    'until [process where event.type == "end"] by process.executable | head 5',
    'sample by host.id [process where `odd name`.x == null] [file where cidrMatch(ip, "10.0.0.0/8", "fe80::/10")] | tail 10',
    'registry where startsWith~(registry.path, """HKLM\\""") or string(x + 1) regex~ ".[0-9]" and true != (a == b) /* so */',
]
TOKENS = re.compile(r'\w+|"[^"]*"|`[^`]*`|\s+|.', re.DOTALL)


def read(text: str) -> EqlQuery | None:
    """The query, or ``None`` where it is refused; anything but a QueryError fails the test."""
    try:
        query = parse(text)
    except QueryError as error:
        check_place(text, error)
        return None
    assert query.text == text
    assert query.positive
    assert len({len(step.keys) for step in query.whole}) == 1
    return query


def test_the_queries() -> None:
    assert [read(one) is not None for one in QUERIES] == [True] * len(QUERIES)


@settings(max_examples=cases(2_000), deadline=None)
@given(mutations([TOKENS.findall(text) for text in QUERIES]))
@example('process where x == "\\')
@example("process where ?`")
@example("sequence [a where b] [")
def test_mistyped_queries(text: str) -> None:
    read(text)


@settings(max_examples=cases(1_000), deadline=None)
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    read(text)
    read(f"process where {text}")
