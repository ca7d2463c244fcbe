"""Random small queries of CEQL with gaps, windows inside and NOT at the ends, and the reference evaluator's answer."""

from tests.cases.ceql import check
from tests.cases.ceql import timed_case as case

__all__ = ["case", "check"]
