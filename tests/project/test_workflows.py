"""What runs elsewhere, on each change and each release, calls what there is here."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    return dict(yaml.safe_load(path.read_text())["jobs"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_targets_that_there_are(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    (lanes,) = re.findall(r"^LANES := (.*)$", makefile, re.MULTILINE)
    known = {*re.findall(r"^([a-z-]+):", makefile, re.MULTILINE), *(f"test-{lane}" for lane in lanes.split())}
    called = [target for job in jobs(path).values() for step in job["steps"] for target in targets(step)]
    assert set(called) <= {*known, "${{ matrix.lane }}"}
    assert called


def targets(step: dict[str, Any]) -> list[str]:
    """The targets of make that a step runs."""
    return re.findall(r"\bmake (?:-s )?(\$\{\{ [\w.]+ \}\}|[a-z-]+)", step.get("run", ""))


def test_tests_and_wheels_are_of_each_version_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name = "Programming Language :: Python :: 3."
    versions = sorted(line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(name))
    assert versions[0] == project["requires-python"].removeprefix(">=")
    for workflow, job in (("ci", "test"), ("release", "dist")):
        matrix = jobs(ROOT / f".github/workflows/{workflow}.yml")[job]["strategy"]["matrix"]
        assert matrix["python"] == versions, workflow


def test_only_the_last_step_of_a_release_may_write() -> None:
    for path in WORKFLOWS:
        whole = yaml.safe_load(path.read_text())
        assert whole["permissions"] == {"contents": "read"}, path.name
        may = {name for name, job in whole["jobs"].items() if "permissions" in job}
        assert may == ({"publish"} if path.stem == "release" else set()), path.name
