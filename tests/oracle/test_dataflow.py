"""The dataflow against the reference evaluator on random iterative queries, and pinned cases that once went wrong."""

from __future__ import annotations

import pytest

from tests.conftest import cases as at_most
from tests.dataflow_cases import Advance, Case, Change, Loop, Push, Restore, Run, Source, Step, Take
from tests.dataflow_checks import check, verify

CASES = 1500


def test_many_seeds() -> None:
    """A failure names its seed: ``python -m tests.dataflow_checks seed seed+1`` makes it small."""
    assert sum(check(seed) for seed in range(at_most(CASES))) > 0


LINKS = Source("links", {"a": "int", "b": "int"})
A_LINK = Push("links", (Change((1, 2), 0), Change((2, 1), 3)), 4)

PINNED = {
    "a loop around a loop: the outer one's punctuation goes through the inner one": Case(
        sources=(LINKS,),
        steps=(
            Loop(
                ("r",),
                ({"v": "int"},),
                (
                    Step("start", "project", ("links",), (), {"v": "a"}),
                    Step("over", "join", ("r", "links"), (), {"on": {"v": "a"}}),
                    Step("after", "project", ("over",), (), {"v": "b"}),
                    Step("both", "union", ("start", "after")),
                    Loop(("q",), ({"v": "int"},), (Step("once", "distinct", ("both",)),), ("once",)),
                ),
                ("q",),
            ),
        ),
        outputs=("r",),
        actions=(A_LINK, Run()),
    ),
    "a relation of a loop that is not recursive": Case(
        sources=(LINKS,),
        steps=(
            Loop(
                ("r", "q"),
                ({"v": "int"}, {"v": "int"}),
                (
                    Step("start", "project", ("links",), (), {"v": "a"}),
                    Step("over", "join", ("r", "links"), (), {"on": {"v": "a"}}),
                    Step("after", "project", ("over",), (), {"v": "b"}),
                    Step("both", "union", ("q", "after")),
                    Step("once", "distinct", ("both",)),
                ),
                ("once", "start"),
            ),
        ),
        outputs=("q", "r"),
        actions=(A_LINK, Run(3), Take("q"), Restore(), Advance(6)),
    ),
}


@pytest.mark.parametrize("case", PINNED.values(), ids=PINNED)
def test_pinned(case: Case) -> None:
    assert verify(case)
