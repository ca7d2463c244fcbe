"""Tables for people, JSON for the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.definitions import Case, Definition
from benchmarks.runner import Row

__all__ = ["print_family", "print_list", "save", "targets"]


def print_family(console: Console, definition: Definition, rows: list[Row]) -> None:
    """One table for a family, then whether its targets were reached."""
    table = Table(title=definition.title, title_justify="left", header_style="bold")
    for name in ("query", "stream"):
        table.add_column(name)
    for name in ("events", "matches", "ms", "events/s", "peer events/s", "ratio", "MiB", "peer MiB"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for line in targets(definition, rows):
        console.print(f"  {line}")
    console.print()


def _cells(row: Row) -> list[str]:
    ours, peer = row.ours, row.peer
    remark = f"[red]{row.wrong}[/red]" if row.wrong else row.note
    if not ours:
        return [row.case, row.stream, *[""] * 8, remark]
    seconds = min(ours["seconds"])
    return [
        row.case,
        row.stream,
        f"{ours['events']:,}",
        f"{ours['matches']:,}",
        f"{seconds * 1e3:,.1f}",
        f"{row.rate:,.0f}",
        f"{row.peer_rate:,.0f}" if peer else "",
        f"{row.ratio:,.0f}x" if peer else "",
        _mebibytes(ours.get("resident_peak")),
        _mebibytes(peer.get("resident_peak")),
        remark,
    ]


def _mebibytes(size: int | None) -> str:
    return f"{size / 2**20:,.0f}" if size else ""


def targets(definition: Definition, rows: list[Row]) -> list[str]:
    """What the family should reach, and what it did. A miss is said, never an error: times are not tests."""
    rows = [row for row in rows if row.ours]
    lines = []
    for stream in dict.fromkeys(row.stream for row in rows):
        lines += _stream_targets(definition, [row for row in rows if row.stream == stream], stream)
    if most := definition.targets.get("same_cost"):
        lines += _compare_streams(rows, most)
    return lines


def _stream_targets(definition: Definition, rows: list[Row], stream: str) -> list[str]:
    wanted = definition.targets
    absent = {case.name for case in definition.cases if case.raw.get("absent")}
    lines = []
    if least := wanted.get("events_per_second"):
        counted = [row for row in rows if wanted.get("only") != "absent" or row.case in absent]
        lines += _at_least(f"events/s on {stream}", least, [(row.rate, row.case) for row in counted])
    if least := wanted.get("ratio"):
        ratios = [(row.ratio, row.case) for row in rows if row.peer]
        lines += _at_least(f"times the peer on {stream}", least, ratios)
    if most := wanted.get("flat"):
        times = [row.ours["events"] / row.rate for row in rows]
        lines.append(_at_most(f"spread over the windows on {stream}", max(times) / min(times) - 1, most))
    if most := wanted.get("steps"):
        lines += _compare_lengths(definition, rows, stream, most)
    if least := wanted.get("share_of_count"):
        lines += [_share(row, least) for row in rows]
    if most := wanted.get("growth"):
        lines += [_at_most(f"growth of memory, {row.case}", row.ours["resident_growth"], most) for row in rows]
    if most := wanted.get("warm_seconds"):
        lines += [_at_most(f"first answer, {row.case} [s]", min(row.ours["seconds"]), most) for row in rows]
    return lines


def _share(row: Row, least: float) -> str:
    share = row.ours["share_of_count"]
    return f"{_mark(share >= least)} {row.case}: {share:.2f} of the rows/s of counting, at least {least:.2f}"


def _compare_lengths(definition: Definition, rows: list[Row], stream: str, most: float) -> list[str]:
    """How much dearer the longest query is than the shortest, with and without output."""
    rates = {row.case: row.rate for row in rows}
    lines = []
    for absent in (False, True):
        cases = [case for case in definition.cases if bool(case.raw.get("absent")) == absent and case.name in rates]
        if len(cases) > 1:
            short, long = min(cases, key=_length), max(cases, key=_length)
            what = f"time of {long.name} over {short.name} on {stream}"
            lines.append(_at_most(what, rates[short.name] / rates[long.name], most))
    return lines


def _length(case: Case) -> int:
    return len(case.query.steps)


def _compare_streams(rows: list[Row], most: float) -> list[str]:
    lines = []
    for case in dict.fromkeys(row.case for row in rows):
        few, *many = [row for row in rows if row.case == case]
        lines += [_at_most(f"{case}: {row.stream} against {few.stream}", few.rate / row.rate, most) for row in many]
    return lines


def _at_least(what: str, least: float, values: list[tuple[float, str]]) -> list[str]:
    if not values:
        return []
    value, where = min(values)
    return [f"{_mark(value >= least)} at least {least:,.0f} {what}: the least is {value:,.1f} ({where})"]


def _at_most(what: str, value: float, most: float) -> str:
    return f"{_mark(value <= most)} {what}: {value:,.2f}, at most {most:,.2f}"


def _mark(reached: bool) -> str:
    return "[green]reached[/green]" if reached else "[yellow]missed[/yellow]"


def print_list(console: Console, definitions: list[Definition], texts: bool) -> None:
    """What there is to run."""
    for definition in definitions:
        console.print(f"[bold]{definition.name}[/bold]: {definition.title}")
        console.print(f"  shows: {definition.shows}", highlight=False)
        console.print(f"  bias: {definition.bias}", highlight=False)
        for case in definition.cases:
            console.print(f"    {case.name}", highlight=False)
            if texts:
                console.print(case.query.text, style="dim", markup=False, highlight=False)


def save(path: Path, rows: list[Row], peer_trouble: str) -> None:
    """Everything that was measured, as JSON."""
    record: dict[str, Any] = {
        "machine": machine.describe(),
        "peer": peer_trouble or "pycer 0.1.6",
        "rows": [row.record() for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
