"""A continuous query that is killed again and again writes exactly the rows of one pass (``python -m tests.spark.kill``)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import SHARE
from tests.spark.kill import KINDS, killed_and_started_again

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.xdist_group("sinks")]

#: All of them in ``make test-kills``; before a commit one, another one each time.
CHOSEN = list(KINDS) if SHARE == "all" else [random.choice(list(KINDS))]


@pytest.mark.parametrize("kind", [0] if SHARE != "all" else range(len(KINDS)))
def test_exactly_once_under_kill_9(tmp_path: Path, kind: int) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    kills = 20 if SHARE == "all" else 2
    seed = random.randrange(10**6)
    moments = killed_and_started_again(CHOSEN[kind], tmp_path, kills, seed)
    print(f"{CHOSEN[kind]}, seed {seed}: {dict(moments)}")
    assert sum(moments.values()) == kills
    if kills > 2:
        assert moments["in a micro-batch"] + moments["between the sink's write and the commit"] > 0
