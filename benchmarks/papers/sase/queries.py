"""The paper's query template (section 6) and what fills it in."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["AGGREGATES", "Case", "case"]

STRATEGIES = {"s2": "partition_contiguity", "s3": "skip_till_next_match"}
AGGREGATES = ("min", "max", "avg")

_NAME = re.compile(r"p([123])(min|max|avg)?(\*?)(s[23])(n?)")


@dataclass(frozen=True)
class Case:
    """A query of the template over a stream.

    ``name`` is the paper's: ``p1`` to ``p3`` with ``s2`` or ``s3``. ``p3`` is with ``min`` unless it says another aggregate; a
    star stands for the longer pattern of experiment 4, an ``n`` at the end for non-overlap output.
    """

    name: str
    predicate: int
    aggregate: str
    longer: bool
    strategy: str
    non_overlap: bool

    def text(self, within: int) -> str:
        """The query with a window of ``within`` units of ``ts``."""
        more = {
            1: [],
            2: ["a[i].price > a[i-1].price"],
            3: [f"a[i].price > {self.aggregate}(a[..i-1].price)"],
        }[self.predicate]
        parts = ["[symbol]", "a[1].price % 500 = 0", *more, "b.volume < 150"]
        if self.longer:
            parts += ["c.price > a[1].price", "c.price < a[a.LEN].price"]
        lines = [
            f"PATTERN SEQ(stock+ a[], stock b{', stock c' if self.longer else ''})",
            f"WHERE {STRATEGIES[self.strategy]} {{ {' and '.join(parts)} }}",
            f"WITHIN {within}",
        ]
        return "\n".join([*lines, "OUTPUT non_overlap"] if self.non_overlap else lines)


def case(name: str) -> Case:
    """A case by its name.

    >>> print(case("p2s2n").text(1000))
    PATTERN SEQ(stock+ a[], stock b)
    WHERE partition_contiguity { [symbol] and a[1].price % 500 = 0 and a[i].price > a[i-1].price and b.volume < 150 }
    WITHIN 1000
    OUTPUT non_overlap
    """
    found = _NAME.fullmatch(name)
    if found is None:
        raise ValueError(f"no query is named '{name}'")
    predicate, aggregate, star, strategy, output = found.groups()
    return Case(name, int(predicate), aggregate or "min", bool(star), strategy, bool(output))
