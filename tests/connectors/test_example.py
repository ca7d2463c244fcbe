"""The example of examples/kafka: Kafka to Kafka and Delta, killed in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark]

RUN = Path(__file__).parents[2] / "examples" / "kafka" / "run.py"


def test_end_to_end(kafka: str, kafka_jars: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'stretto[delta]'")
    # The cache is the machine's: the kernels and the artifacts are there already.
    answer = subprocess.run(
        [sys.executable, str(RUN)],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=tmp_path,
        env=os.environ,
    )
    assert answer.returncode == 0, answer.stderr[-6000:]
    assert "the pipeline is killed" in answer.stdout
    assert "matches in the table, as expected" in answer.stdout
    assert "4 records to the side" in answer.stdout
