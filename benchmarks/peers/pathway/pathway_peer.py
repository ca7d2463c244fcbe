"""Reachability in Pathway, one worker. Started by ``launch.py`` in an interpreter that has pathway; needs nothing else.

Reads a job from the file named on the command line: changes of links with the batch that each belongs to. Runs it, prints a JSON
line. A run is timed from ``pw.run()`` to its end, with the building of Pathway's own graph and the reading of the rows, which are
in memory; a run over the first batch alone tells what there is to it beside the changes.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pathway as pw
from pathway.internals.parse_graph import G


class Links(pw.Schema):  # type: ignore[misc, name-defined]
    """A link: its ends are its key, by which it is removed again."""

    src: int = pw.column_definition(primary_key=True)
    dst: int = pw.column_definition(primary_key=True)


def closure(links: Any) -> Any:
    """All pairs of nodes with a path."""

    def once(reach: Any, links: Any) -> dict[str, Any]:
        further = links.join(reach, links.dst == reach.src).select(pw.left.src, pw.right.dst)
        both = pw.Table.concat_reindex(links, further)
        return {"reach": both.groupby(pw.this.src, pw.this.dst).reduce(pw.this.src, pw.this.dst)}

    start = links.groupby(pw.this.src, pw.this.dst).reduce(pw.this.src, pw.this.dst)
    return pw.iterate(once, reach=pw.iterate_universe(start), links=links).reach


def run(rows: list[tuple[int, int, int, int]], keep: Path | None) -> dict[str, Any]:
    """One run; ``keep``: write what is left in the end (untimed)."""
    G.clear()
    reach = closure(pw.debug.table_from_rows(Links, rows, is_stream=True))
    if keep is not None:
        left = pw.debug.table_to_pandas(reach, include_id=False)
        left[["src", "dst"]].to_csv(keep, index=False)
        return {"rows": len(left)}
    ends: list[float] = []
    pw.io.null.write(reach)
    count = reach.reduce(count=pw.reducers.count())
    pw.io.subscribe(count, on_change=lambda *_, **__: None, on_time_end=lambda _: ends.append(time.perf_counter()))
    start, cpu = time.perf_counter(), time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    return {
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "ends": [end - start for end in ends],
    }


def stream(job: dict[str, Any]) -> Iterable[tuple[int, int, int, int]]:
    """Rows with their batch, and whether they come or go; the times of batches are even numbers."""
    columns = (job[name] for name in ("src", "dst", "batch", "sign"))
    return ((src, dst, 2 * batch, sign) for src, dst, batch, sign in zip(*columns, strict=True))


def main() -> None:
    """Run the job that the command line names."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows = list(stream(job))
    first = [row for row in rows if row[2] == rows[0][2]]
    runs = [run(rows, None) for _ in range(job["repeat"])]
    start = run(first, None)
    kept = run(rows, Path(job["keep"])) if job["keep"] else {}
    print("\n" + json.dumps({"runs": runs, "start": start, **kept}), flush=True)


if __name__ == "__main__":
    main()
