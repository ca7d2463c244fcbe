"""Iterative queries: random plans and streams, with every definite punctuation held to what comes later."""

from tests.cases.dataflow.drawing import case, nested_case
from tests.cases.dataflow.driving import check, check_nested, shown, shrunk

__all__ = ["case", "check", "check_nested", "nested_case", "shown", "shrunk"]
