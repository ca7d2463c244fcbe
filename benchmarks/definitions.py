"""Reads ``definitions/*.toml``: one file a family of queries, each case with its expected counts."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.data import DataSpec
from benchmarks.queries import Sequence, Step

__all__ = ["FOLDER", "Case", "Definition", "load_all"]

FOLDER = Path(__file__).with_name("definitions")


@dataclass(frozen=True)
class Case:
    """One query of a family, and the number of matches it must give on each of the family's streams."""

    name: str
    query: Sequence
    expected: dict[str, int]
    peer: bool
    raw: dict[str, Any]


@dataclass(frozen=True)
class Definition:
    """A family: its queries, the streams to run them on, and the figures it should reach."""

    name: str
    title: str
    kind: str
    shows: str
    bias: str
    data: dict[str, DataSpec]
    cases: tuple[Case, ...]
    full: tuple[str, ...]
    quick: tuple[str, ...]
    quick_cases: tuple[str, ...]
    peer_rows_quick: int
    targets: dict[str, Any] = field(default_factory=dict)

    def streams(self, quick: bool) -> tuple[str, ...]:
        """The names of the streams of a run."""
        return self.quick if quick else self.full

    def chosen(self, quick: bool) -> tuple[Case, ...]:
        """The cases of a run."""
        return tuple(case for case in self.cases if not quick or not self.quick_cases or case.name in self.quick_cases)


def load_all(folder: Path = FOLDER) -> list[Definition]:
    """All families, in the order of their file names."""
    raw = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.toml"))}
    return [_definition(name, raw) for name in raw]


def _definition(name: str, files: dict[str, dict[str, Any]]) -> Definition:
    own = files[name]
    base = files[own["like"]] if "like" in own else {}
    query = {**base.get("query", {}), **own.get("query", {})}
    data = {**base.get("data", {}), **own.get("data", {})}
    run = own["run"]
    return Definition(
        name=name,
        title=own["title"],
        kind=own["kind"],
        shows=own["shows"].strip(),
        bias=own["bias"].strip(),
        data={key: DataSpec(**value) for key, value in data.items()},
        cases=tuple(_case(key, value, query) for key, value in own["cases"].items()),
        full=tuple(run["full"]),
        quick=tuple(run["quick"]),
        quick_cases=tuple(run.get("quick_cases", ())),
        peer_rows_quick=run.get("peer_rows_quick", 250_000),
        targets=own.get("targets", {}),
    )


def _case(name: str, raw: dict[str, Any], family: dict[str, Any]) -> Case:
    merged = {**family, **raw}
    prefix = merged.get("variable", "x")
    steps = [Step.parse(step, f"{prefix}{index}") for index, step in enumerate(merged["steps"], start=1)]
    steps = steps[: merged.get("length", len(steps))]
    if raw.get("absent"):
        steps.append(Step.parse(family["absent"], "NE"))
    over = merged.get("over")
    query = Sequence(
        steps=tuple(steps),
        window=merged["window"],
        attribute=merged["attribute"],
        strategy=merged.get("strategy", ""),
        over=(over["as"], over["where"]) if over else None,
        partition=merged.get("partition", ""),
        consume=merged.get("consume", "ANY"),
        limit=merged.get("limit", 1000),
    )
    return Case(name, query, dict(raw.get("expected", {})), raw.get("peer", True), raw)
