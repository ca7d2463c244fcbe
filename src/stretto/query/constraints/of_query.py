"""The chains of a query in CEQL, SASE+ or EQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from stretto.query.constraints.ceql import CeqlChain
from stretto.query.constraints.eql import EqlChain
from stretto.query.constraints.model import Chain
from stretto.query.constraints.sase import SaseChain
from stretto.query.eql import EqlQuery
from stretto.query.query import AnyQuery, ParsedQuery
from stretto.query.sase import SaseQuery


def chains_of(parsed: AnyQuery) -> Iterator[Chain]:
    """What a query asks: a chain of steps, or one for each alternative of the whole."""
    return _CHAINS[type(parsed)](parsed)


_CHAINS: Mapping[type[AnyQuery], Callable[[Any], Iterator[Chain]]] = {
    ParsedQuery: CeqlChain.of,
    SaseQuery: lambda parsed: iter([SaseChain(parsed)]),
    EqlQuery: lambda parsed: iter([EqlChain(parsed)]),
}
