"""What each engine can, as a table for ``docs/engines.md``: ``python -m stretto.engines.abilities`` prints it.

Each program says it of itself (``abilities``); a test tries every cell.
"""

from __future__ import annotations

from stretto.engines.afa.program import AfaProgram
from stretto.engines.nfab.program import NfabProgram
from stretto.engines.tecs.program import Program
from stretto.engines.timed.program import TimedProgram
from stretto.engines.totals.program import TotalsProgram

ENGINES: dict[str, type[Program | NfabProgram | TimedProgram | AfaProgram | TotalsProgram]] = {
    "tecs": Program,
    "nfab": NfabProgram,
    "timed": TimedProgram,
    "afa": AfaProgram,
    "totals": TotalsProgram,
}

#: What a query may ask for, by the word in :attr:`~stretto.engines.api.Compiled.abilities`.
FEATURES = {
    "any": "`skip_till_any_match`, `;`",
    "next": "`skip_till_next_match`",
    "contiguity": "`strict_contiguity`, `partition_contiguity`, `:`",
    "negation": "negation between components",
    "closing": "negation at an end of the pattern",
    "gaps": "gaps between neighbours, windows inside: `AFTER`, `GAP`, `(…) WITHIN`",
    "relations": "conditions that relate events",
    "keys": "keys: `PARTITION BY`, `[k]`",
    "time": "windows of time",
    "events": "windows of events: `WITHIN n EVENTS`",
    "limit": "`LIMIT`",
    "choice": "the best matches and samples: `ORDER BY … LIMIT`, `SAMPLE`",
    "totals": "counts and sums over all matches: `COUNT(*)`, `RETURN TOTAL`",
    "keep": "`KEEP`, `AFTER MATCH SKIP`",
    "timeouts": "partial matches that time out: `timeouts=`",
    "return": "`RETURN`",
    "summary": 'counts of matches that are listed otherwise: `output="summary"`',
    "sets": "match sets: `match_sets`, `push_sets`",
    "disorder": "events out of order that are sorted: `disorder=`",
    "speculation": "answers ahead of what is certain, which are taken back: `speculation=`",
    "sign": "events that are taken back: `sign=`",
    "prime": "events that are read without what they complete: `prime`",
    "arcs": "arcs that change: `add_arc`, `retire_arc`",
    "patterns": "many patterns in one pass: `PatternSet`, `spark.match_patterns`",
    "snapshots": "snapshots",
    "spark": "`spark.match`, batch and streaming",
}


def table() -> str:
    """The table, in Markdown."""
    lines = ["| | tECS | NFAb | timed | AFA | totals |", "| --- | --- | --- | --- | --- | --- |"]
    for word, text in FEATURES.items():
        cells = ("yes" if word in program.abilities else "no" for program in ENGINES.values())
        lines.append(f"| {text} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
