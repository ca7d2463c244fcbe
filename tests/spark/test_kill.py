"""A continuous query that is killed again and again writes exactly the rows of one pass (``python -m tests.spark.kill``)."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.conftest import SHARE
from tests.spark.kill import KINDS, killed_and_started_again

pytestmark = [pytest.mark.spark, pytest.mark.kill]


def test_each_kind_has_a_lane() -> None:
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    found = re.search(r"^KILLS := \$\(addprefix kills-,(.*)\)$", makefile, re.MULTILINE)
    assert found is not None
    assert found[1].split() == list(KINDS)


@pytest.mark.parametrize("kind", list(KINDS) if SHARE == "all" else ["any"])
def test_exactly_once_under_kill_9(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    name = random.choice(list(KINDS)) if kind == "any" else kind  # before a commit one, another one each time
    kills = 20 if SHARE == "all" else 1
    seed = random.randrange(10**6)
    moments = killed_and_started_again(name, tmp_path, kills, seed)
    print(f"{name}, seed {seed}: {dict(moments)}")
    assert sum(moments.values()) == kills
    if kills > 2:
        assert moments["in a micro-batch"] + moments["between the sink's write and the commit"] > 0
