"""The Cleanse operator of the AFA paper (section 5.3): events in any order in, and out when they are as certain as asked for."""

from stretto.cleanse.operator import Cleanse
from stretto.cleanse.runs import Released
from stretto.cleanse.spans import check_span, span

__all__ = ["Cleanse", "Released", "check_span", "span"]
