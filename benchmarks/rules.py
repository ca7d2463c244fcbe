"""``python -m benchmarks.rules``: 1,043 public detection rules in EQL, in one set over one stream.

The rules come from the data folder (``benchmarks.data``): 823 of single events, 220 of sequences and samples. Events are made for
them: each is filled with values that a random step of a random rule asks for, and with one of 50 values for each key. What it shows:
events a second of all rules in one set, of the same rules one by one, and, on a tenth of the events, of PyPI's ``eql`` where
``--peer`` names the interpreter of an environment that has it. The set and the single rules must give equally many rows.

Bias: towards the set, an event concerns few rules; against it, each event is one that some rule asks for, which is rare in life.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

import stretto
from benchmarks.data import data_folder
from stretto.languages.eql import parse
from stretto.query import predicate as p
from stretto.query.eql import EqlQuery

EVENTS = 100_000
FILES = ("elastic_eql_event_rules", "elastic_eql_sequence_rules")
ROLES = {"type": "event.category", "time": "@timestamp"}
PEER = Path(__file__).with_name("peers") / "eql_peer.py"
VALUES_OF_A_KEY = 50
MILLISECONDS_APART = 50


class Rule(NamedTuple):
    """A rule of the data folder."""

    name: str
    text: str
    query: EqlQuery


def read(folder: Path) -> list[Rule]:
    """All rules."""
    cases = chain.from_iterable(
        json.loads((folder / "rules" / f"{name}.json").read_text(encoding="utf-8"))["cases"] for name in FILES
    )
    return [Rule(f"r{number}", one["query"], parse(one["query"])) for number, one in enumerate(cases)]


# ---- The columns that a rule names


def schema_of(query: EqlQuery) -> pa.Schema:
    """Columns for all fields that a query names, of types that its conditions take."""
    kinds: dict[str, pa.DataType] = {"event.category": pa.string(), "@timestamp": pa.timestamp("ms")}
    kinds |= dict.fromkeys(query.attributes, pa.string())
    for condition in query.conditions:
        for node in p.walk(condition):
            kinds.update(_kinds(node))
    for keys in zip(*(step.keys for step in query.whole), strict=True):  # what is joined has one type
        one = next((kinds[key.name] for key in keys if kinds[key.name] != pa.string()), pa.string())
        kinds |= {key.name: one for key in keys}
    return pa.schema(kinds)


def _kinds(node: p.Expression) -> dict[str, pa.DataType]:
    """The types that a node says of the fields in it."""
    pairs: list[tuple[Any, Any]] = []
    if isinstance(node, p.Comparison):
        pairs = [(node.left, node.right), (node.right, node.left)]
    elif isinstance(node, p.In):
        pairs = [(node.operand, one) for one in node.values]
    elif isinstance(node, p.Arithmetic):
        pairs = [(node.left, p.Constant(1)), (node.right, p.Constant(1))]
    found: dict[str, pa.DataType] = {}
    for one, other in pairs:
        if not isinstance(one, p.Attribute):
            continue
        value = getattr(other, "value", None)
        counted = isinstance(other, p.Arithmetic) or (isinstance(other, p.Function) and other.name == "length")
        if isinstance(value, bool):
            found[one.name] = pa.bool_()
        elif counted or (value is not None and not isinstance(value, str)):
            found[one.name] = pa.int64()
    return found


def common_schema(queries: Iterable[EqlQuery]) -> pa.Schema:
    """Columns for all fields of all rules; where they differ, what is no string."""
    kinds: dict[str, pa.DataType] = {}
    for field in chain.from_iterable(map(schema_of, queries)):
        if kinds.get(field.name, pa.string()) == pa.string():
            kinds[field.name] = field.type
    return pa.schema(kinds)


# ---- Events that rules ask for


def stream(rules: list[Rule], schema: pa.Schema, events: int) -> pa.Table:
    """Events, each with values that a step of a rule asks for."""
    rng = random.Random(1)
    keys = sorted({key.name for rule in rules for step in rule.query.whole for key in step.keys})
    rows = []
    for number in range(events):
        query = rng.choice(rules).query
        step = rng.choice(query.whole)
        row: dict[str, Any] = {"@timestamp": number * MILLISECONDS_APART, "event.category": step.category or "process"}
        for condition in query.conditions:
            for name, values in _asked(condition):
                value = rng.choice(values)
                if isinstance(value, str):
                    value = value.replace("*", "x").replace("?", "y")
                if name in schema.names and _fits(value, schema.field(name).type):
                    row.setdefault(name, value)
        for key in keys:
            value = rng.randrange(VALUES_OF_A_KEY)
            kind = schema.field(key).type
            row.setdefault(
                key, f"h{value}" if pa.types.is_string(kind) else None if pa.types.is_boolean(kind) else value
            )
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schema)


def _asked(condition: p.Expression) -> Iterator[tuple[str, list[Any]]]:
    """Fields, and values of which a condition asks for one."""
    for node in p.walk(condition):
        if isinstance(node, p.Comparison) and node.op == "=" and isinstance(node.left, p.Attribute):
            yield node.left.name, [getattr(node.right, "value", None)]
        elif isinstance(node, p.In) and isinstance(node.operand, p.Attribute):
            yield node.operand.name, [one.value for one in node.values]
        elif isinstance(node, p.Wildcard) and isinstance(node.operand, p.Attribute):
            yield node.operand.name, list(node.patterns)


def _fits(value: object, kind: pa.DataType) -> bool:
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    return bool(
        pa.types.is_string(kind) if isinstance(value, str) else isinstance(value, int) and pa.types.is_integer(kind)
    )


# ---- Sides


def in_one_set(rules: list[Rule], events: pa.Table) -> tuple[int, float]:
    """Rows, and processor seconds over the events, of all rules in one set."""
    patterns = stretto.PatternSet(events.schema, output="positions", **ROLES)
    patterns.change([stretto.Change(rule.name, rule.text, language="eql") for rule in rules])
    start = time.process_time()
    rows = sum(table.num_rows for table in patterns.iter_push(events)) + patterns.finish().num_rows
    return rows, time.process_time() - start


def one_by_one(rules: list[Rule], events: pa.Table) -> tuple[int, float]:
    """The same of each rule by itself, compiled before."""
    queries = [stretto.compile(rule.text, events.schema, language="eql", **ROLES) for rule in rules]
    start = time.process_time()
    rows = sum(stretto.match(query, events, output="positions", **ROLES).num_rows for query in queries)
    return rows, time.process_time() - start


def peer(interpreter: str, rules: list[Rule], events: pa.Table) -> str:
    """What the peer says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        rows = [{name: value for name, value in row.items() if value is not None} for row in events.to_pylist()]
        times = events["@timestamp"].cast(pa.int64()).to_pylist()
        for row, at in zip(rows, times, strict=True):
            row["@timestamp"] = at
        job.write_text(json.dumps({"rules": [rule.text for rule in rules], "events": rows}), encoding="utf-8")
        run = subprocess.run([interpreter, str(PEER), str(job)], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def main() -> int:
    """Run all sides; 1 when the set and the single rules differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help="events of the stream")
    parser.add_argument("--peer", help="a Python interpreter that has PyPI's eql (a program of its own: it is AGPL)")
    arguments = parser.parse_args()
    folder = data_folder()
    if not (folder / "rules").exists():
        print(f"no rules in {folder} (set STRETTO_DATA)", file=sys.stderr)
        return 2
    given = read(folder)
    rules = [rule for rule in given if not rule.query.pipes]
    events = stream(rules, common_schema(rule.query for rule in rules), arguments.events)
    print(f"{len(rules):,} of {len(given):,} rules: a set takes none with pipes")
    print(f"{events.num_rows:,} events of {events.num_columns} columns", flush=True)
    found = {}
    for name, side in (("in one set", in_one_set), ("one by one", one_by_one)):
        side(rules, events.slice(0, 1000))  # which compiles
        rows, seconds = side(rules, events)
        found[name] = rows
        print(f"{name}: {rows:,} rows, {events.num_rows / seconds:,.0f} events/s", flush=True)
    if arguments.peer:
        print(
            f"PyPI's eql, a tenth of the events: {peer(arguments.peer, rules, events.slice(0, events.num_rows // 10))}"
        )
    return int(len(set(found.values())) > 1)


if __name__ == "__main__":
    sys.exit(main())
