"""The AFA operator: random automata with logs of events, revisions, punctuations and changes of arcs, fed in many ways."""

from tests.cases.afa.drawing import AfaCase, case
from tests.cases.afa.driving import Drive, check, check_reference, shown, shrunk

__all__ = ["AfaCase", "Drive", "case", "check", "check_reference", "shown", "shrunk"]
