"""Queries as files: what is written is read again by what it is for."""

from __future__ import annotations

import random
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from pyarrow import parquet as pq

import stretto
from stretto.studio.saving import written
from stretto.studio.workbench import Roles
from tests.conftest import cases

QUERY = "SELECT * FROM S\nWHERE A AS a; B AS b FILTER b[name = 'é \"x\" \\']"
EVENTS = pa.table({"type": ["A", "B", "B"], "t": [1, 2, 3], "name": ["", 'é "x" \\', "y"]})
ROLES = Roles(time="t", time_unit="s")


def test_a_pipeline_is_read_again(tmp_path: Path) -> None:
    pipelines = pytest.importorskip("stretto.pipelines")
    pq.write_table(EVENTS, tmp_path / "some events.parquet")
    csv.write_csv(EVENTS, tmp_path / "events.csv")
    for name in ("some events.parquet", "events.csv"):
        path = tmp_path / "pipeline.toml"
        path.write_text(written("pipeline", QUERY, ROLES, name, EVENTS.schema), encoding="utf-8")
        assert [str(source.path) for source in pipelines.load(path).sources] == [name]
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        assert document["query"][0]["text"] == QUERY
        assert document["events"] == {"time": "t", "time_unit": "s"}


def test_a_rule_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "rule.toml").write_text(written("rule", QUERY, ROLES, "a b/1.csv", EVENTS.schema), encoding="utf-8")
    rules = stretto.read_rules(tmp_path)
    assert not rules.problems
    assert rules.match(EVENTS).matches.num_rows == 1
    for data, name in [("in/*.parquet", "in"), ("*.parquet", "query"), ("a b/1.csv", "1")]:
        assert tomllib.loads(written("rule", QUERY, ROLES, data, EVENTS.schema))["rule"][0]["id"] == name


def test_a_text_of_any_signs_is_the_same_when_it_is_read() -> None:
    for seed in range(cases(200)):
        draw = random.Random(seed)
        text = "".join(draw.choices("a'\n\t\r\\\"é\x7f\x00\u2028\ufeff😀", k=draw.randint(0, 12)))
        made = written("rule", text, ROLES, "e.csv", EVENTS.schema)
        assert tomllib.loads(made)["rule"][0]["query"] == text, seed
    assert "query = '''\nSELECT * FROM S\nWHERE A" in written("rule", QUERY, ROLES, "e.csv", EVENTS.schema)


def test_a_script_finds_the_matches(tmp_path: Path) -> None:
    pq.write_table(EVENTS, tmp_path / "it's.parquet")
    script = tmp_path / "query.py"
    script.write_text(written("python", QUERY, ROLES, "it's.parquet", EVENTS.schema), encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "[0, 1]" in done.stdout


def test_the_query_alone() -> None:
    assert written("query", QUERY, ROLES, "e.csv", EVENTS.schema) == f"{QUERY}\n"


@pytest.mark.parametrize(
    ("kind", "roles", "data", "message"),
    [
        ("poem", ROLES, "e.csv", "choose one of pipeline, rule, python, query"),
        ("pipeline", Roles(), "e.csv", "a pipeline needs a column of time"),
        ("rule", Roles(), "e.csv", "a rule needs a column of time"),
        ("pipeline", ROLES, "e.arrow", "save it as Python"),
    ],
)
def test_what_is_refused(kind: str, roles: Roles, data: str, message: str) -> None:
    with pytest.raises(stretto.OptionError, match=message):
        written(kind, QUERY, roles, data, EVENTS.schema)


def test_a_column_that_pipelines_do_not_say() -> None:
    nested = pa.schema([("t", pa.int64()), ("x", pa.list_(pa.int64()))])
    with pytest.raises(stretto.OptionError, match="column 'x' is list<"):
        written("pipeline", QUERY, ROLES, "e.json", nested)
