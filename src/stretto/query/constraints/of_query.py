"""The chains of a query in CEQL, SASE+ or EQL."""

from __future__ import annotations

from collections.abc import Iterator

from stretto.query.constraints.ceql import CeqlChain
from stretto.query.constraints.eql import EqlChain
from stretto.query.constraints.model import Chain
from stretto.query.constraints.sase import SaseChain
from stretto.query.eql import EqlQuery
from stretto.query.query import ParsedQuery
from stretto.query.sase import SaseQuery


def chains_of(parsed: ParsedQuery | SaseQuery) -> Iterator[Chain]:
    """What a query asks: a chain of steps, or one for each alternative of the whole."""
    if isinstance(parsed, ParsedQuery):
        yield from CeqlChain.of(parsed)
    elif isinstance(parsed, EqlQuery):
        yield EqlChain(parsed)
    else:
        yield SaseChain(parsed)
