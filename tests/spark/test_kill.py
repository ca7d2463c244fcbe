"""A continuous query that is killed again and again writes exactly the rows of one pass (``python -m tests.spark.kill``)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.conftest import SHARE
from tests.spark.kill import killed_and_started_again

pytestmark = [pytest.mark.spark, pytest.mark.kill, pytest.mark.xdist_group("sinks")]


def test_exactly_once_under_kill_9(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'stretto[spark]'")
    kills = 20 if SHARE == "all" else 1
    seed = random.randrange(10**6)
    moments = killed_and_started_again(tmp_path, kills, seed)
    print(f"seed {seed}: {dict(moments)}")
    assert sum(moments.values()) == kills
    if kills > 1:
        assert moments["in a micro-batch"] > 0
