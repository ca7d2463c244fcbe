"""What PySpark's workers tell of themselves stays out of a pipeline's standard error; all else is handed on."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = textwrap.dedent(
    """
    import os, subprocess, sys, time
    from stretto.pipelines.running import quiet_workers

    with quiet_workers():
        told = "Streaming TransformWithStateInPandas Python worker"
        lines = ["one", f"Starting {told}.", "", f"{told} finish init stage of Python runner.", "", "", "two"]
        child = subprocess.Popen([sys.executable, "-c", f"import sys; sys.stderr.write({chr(10).join(lines) + chr(10)!r})"])
    print("three", file=sys.stderr, flush=True)
    child.wait()
    time.sleep(1)
    """
)


def test_lines_of_workers_are_left_out() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert sorted(done.stderr.splitlines()) == ["", "one", "three", "two"]
