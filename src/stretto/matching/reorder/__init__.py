"""The Cleanse operator of the AFA paper (section 5.3): events in any order in, and out when they are as certain as asked for."""

from stretto.matching.reorder.operator import Cleanse
from stretto.matching.reorder.runs import Released
from stretto.matching.reorder.spans import check_span, span

__all__ = ["Cleanse", "Released", "check_span", "span"]
