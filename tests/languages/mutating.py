"""Queries with mistakes in them, and what an error has to say of them, for the tests of every language."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from stretto.errors import QueryError
from tests.conftest import SHARE

#: Characters of a very long text: many more than any recursion is deep, and enough for what grows with their square to take long.
LONG = 100_000 if SHARE == "all" else 20_000


@st.composite
def mutations(draw: st.DrawFn, queries: Sequence[Sequence[str]]) -> str:
    """A query, given as its tokens, with some of them deleted, doubled, swapped, replaced or cut in two."""
    tokens = list(draw(st.sampled_from(queries)))
    for _ in range(draw(st.integers(1, 4))):
        if len(tokens) < 2:
            break
        i, j = (draw(st.integers(0, len(tokens) - 1)) for _ in range(2))
        match draw(st.integers(0, 5)):
            case 0:
                del tokens[i]
            case 1:
                tokens.insert(i, tokens[i])
            case 2:
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case 3:
                tokens[i] = tokens[j]
            case 4:
                tokens[i] = tokens[i][: draw(st.integers(0, len(tokens[i])))]
            case _:
                del tokens[i:]
    return "".join(tokens)


def check_place(text: str, error: QueryError) -> None:
    """Whatever is wrong with a text, its error says what and where."""
    assert str(error)
    assert error.text == text
    assert error.span is not None or error.message.endswith(" is empty")
    assert error.span is None or 0 <= error.span.start <= error.span.end <= len(text)
