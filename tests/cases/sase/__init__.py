"""SASE+: random queries and streams; the NFAb engine (basic and merged), tECS where it may run, and snapshots."""

from tests.cases.sase.engines import check
from tests.cases.sase.queries import SaseCase, case, sase, text_of

__all__ = ["SaseCase", "case", "check", "sase", "text_of"]
