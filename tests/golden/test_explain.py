"""The exact texts of ``explain`` and ``draw``."""

# ruff: noqa: E501 - texts as they are printed

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import stretto
from stretto.explaining import Drawing

MAX = """SELECT MAX * FROM Stock
WHERE SELL AS a; (BUY OR SELL)+ AS b
FILTER a[price > 100] AND b[name = 'MSFT']
PARTITION BY [name] WITHIN 1 minute LIMIT 3"""
MAX_SCHEMA = {"type": "string", "name": "string", "price": "double", "ts": "timestamp[ms]"}

NONE = "SELECT NONE FROM S WHERE A; B FILTER B[v IN (1, 2)] WITHIN 5 [t]"

MAX_BOUND = """\
query      SELECT MAX * FROM Stock
           WHERE SELL AS a; (BUY OR SELL)+ AS b
           FILTER a[price > 100] AND b[name = 'MSFT']
           PARTITION BY [name] WITHIN 1 minute LIMIT 3
pattern    ((SELL AS a FILTER a[price > 100.0]) ; (((BUY OR SELL)+) AS b FILTER b[name = 'MSFT']))
conditions type: type = 'SELL', type = 'BUY'
           price: price > 100.0
           name: name = 'MSFT'
           these tell apart 12 kinds of events at most
selection  MAX: per interval, the complex events with no larger one
partition  by name; events where one of them is NULL are in no partition
window     end − start ≤ 60 s, measured by the stream's time
output     a, b; an output forgets nothing; at most 3 per triggering event, latest start first
automaton  states 0..2, initial 0, final {2}
             0 → 1  SELL[price > 100.0] / • {SELL, a}
             1 → 2  BUY[name = 'MSFT'] / • {BUY, b}
             1 → 1  BUY[name = 'MSFT'] / • {BUY, b}
             1 → 2  SELL[name = 'MSFT'] / • {SELL, b}
             1 → 1  SELL[name = 'MSFT'] / • {SELL, b}
             1 → 1  TRUE / ∘
           events that satisfy no guard are not visited
engine     tecs: conditions relate events only by equal name (PARTITION BY): constant time per event whatever the window, output-linear delay
           not nfab: it has a run for each partial match, with registers that no condition of this query needs
           not timed: it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none
           not afa: it keeps what it needs to take output back, which events in order never ask for"""

MAX_UNBOUND = """\
query      SELECT MAX * FROM Stock
           WHERE SELL AS a; (BUY OR SELL)+ AS b
           FILTER a[price > 100] AND b[name = 'MSFT']
           PARTITION BY [name] WITHIN 1 minute LIMIT 3
pattern    (((SELL AS a) ; (((BUY OR SELL)+) AS b)) FILTER a[price > 100] AND b[name = 'MSFT'])
conditions b[name = 'MSFT']
           a[price > 100]
selection  MAX: per interval, the complex events with no larger one
partition  by name; events where one of them is NULL are in no partition
window     end − start ≤ 60 s, measured by the stream's time
output     a, b; an output forgets nothing; at most 3 per triggering event, latest start first
automaton  states 0..2, initial 0, final {2}
             0 → 1  SELL[price > 100] / • {SELL, a}
             1 → 2  BUY[name = 'MSFT'] / • {BUY, b}
             1 → 1  BUY[name = 'MSFT'] / • {BUY, b}
             1 → 2  SELL[name = 'MSFT'] / • {SELL, b}
             1 → 1  SELL[name = 'MSFT'] / • {SELL, b}
             1 → 1  TRUE / ∘
           events that satisfy no guard are not visited
engine     tecs: conditions relate events only by equal name (PARTITION BY): constant time per event whatever the window, output-linear delay
           not nfab: it has a run for each partial match, with registers that no condition of this query needs
           not timed: it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none
           not afa: it keeps what it needs to take output back, which events in order never ask for
schema     none yet: attributes and types are checked when the query meets its events"""

CONTIGUOUS = """\
query      SELECT * FROM S WHERE A : B WITHIN 4 EVENTS CONSUME BY ANY
pattern    (A : B)
conditions none but the event types
selection  ALL: every complex event
partition  none: one stream
window     end − start ≤ 4 events
output     A, B; an output forgets all partial matches
automaton  states 0..2, initial 0, final {2}
             0 → 1  A / • {A}
             1 → 2  B / • {B}
           every event of the stream is visited: some state does not wait
engine     tecs: no condition relates events: constant time per event whatever the window, output-linear delay
           not nfab: it has a run for each partial match, with registers that no condition of this query needs
           not timed: it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none
           not afa: it keeps what it needs to take output back, which events in order never ask for
schema     none yet: attributes and types are checked when the query meets its events"""

NONE_BOUND = """\
query      SELECT NONE FROM S WHERE A; B FILTER B[v IN (1, 2)] WITHIN 5 [t]
pattern    π{}((A ; (B FILTER B[v IN (1, 2)])))
conditions type: type = 'A', type = 'B'
           v: v IN (1, 2)
           these tell apart 6 kinds of events at most
selection  ALL: every complex event
partition  none: one stream
window     end − start ≤ 5, measured by [t]
output     only the intervals; an output forgets nothing
automaton  states 0..2, initial 0, final {2}
             0 → 1  A / ∘
             1 → 2  B[v IN (1, 2)] / ∘
             1 → 1  TRUE / ∘
           events that satisfy no guard are not visited
engine     tecs: no condition relates events: constant time per event whatever the window, output-linear delay
           not nfab: it has a run for each partial match, with registers that no condition of this query needs
           not timed: it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none
           not afa: it keeps what it needs to take output back, which events in order never ask for"""

DRAWN = """\
digraph CEA {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  start [shape=point, style=invis, width=0];
  start -> q0;
  q0 [label="q0"];
  q1 [label="q1"];
  q2 [label="q2", shape=doublecircle];
  q0 -> q1 [label="A[name = 'a\\"\\\\'] / • x"];
  q1 -> q2 [label="B / •\\nC / • y"];
  q1 -> q1 [label="B / •\\nC / • y\\nTRUE / ∘"];
}
"""

DRAWN_QUERY = "SELECT * FROM S WHERE A AS x; (B OR C AS y)+ FILTER x[name = 'a\"\\']"


@pytest.mark.parametrize(
    ("text", "schema", "roles", "expected"),
    [
        (MAX, MAX_SCHEMA, {"time": "ts"}, MAX_BOUND),
        (MAX, None, {}, MAX_UNBOUND),
        ("SELECT * FROM S WHERE A : B WITHIN 4 EVENTS CONSUME BY ANY", None, {}, CONTIGUOUS),
        (NONE, {"type": "string", "v": "int64", "t": "int64"}, {}, NONE_BOUND),
    ],
    ids=["bound", "unbound", "contiguous", "none"],
)
def test_explain(text: str, schema: dict[str, str] | None, roles: dict[str, str], expected: str) -> None:
    assert stretto.compile(text, schema, **roles).explain() == expected


@pytest.mark.parametrize("schema", [None, {"type": "string", "name": "string"}], ids=["unbound", "bound"])
def test_draw(schema: dict[str, str] | None) -> None:
    drawing = stretto.compile(DRAWN_QUERY, schema).draw()
    assert drawing.source == str(drawing) == DRAWN


def test_long_conditions_are_cut() -> None:
    names = ", ".join(f"'{i:04}'" for i in range(30))
    label = str(stretto.compile(f"SELECT * FROM S WHERE A FILTER A[name IN ({names})]").draw())
    assert "A[name IN ('0000', '0001', '0002', '0003', '0004', '0005'," in label
    assert "… / •" in label
    assert "0029" not in label


def test_without_graphviz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    drawing = Drawing("digraph {}\n")
    message = "drawing needs Graphviz's program 'dot'; str(drawing) gives the graph as text without it"
    for call in (drawing.svg, lambda: drawing.save(tmp_path / "a.svg")):
        with pytest.raises(stretto.OptionError) as caught:
            call()
        assert str(caught.value) == message
    assert not (tmp_path / "a.svg").exists()
    assert drawing._repr_mimebundle_() == {"text/plain": "digraph {}\n"}
    drawing.save(tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text(encoding="utf-8") == "digraph {}\n"
    with pytest.raises(stretto.OptionError, match=r"cannot draw to 'a\.txt': end it in \.dot, \.svg, \.png or \.pdf"):
        drawing.save(tmp_path / "a.txt")


def test_with_graphviz(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the program gets and what becomes of its answer."""
    calls = []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        calls.append((command, options["input"]))
        return subprocess.CompletedProcess(command, 0, b"<svg>\xe2\x80\xa2</svg>", b"")

    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "run", run)
    drawing = Drawing("digraph { • }\n")
    assert drawing.svg() == "<svg>•</svg>"
    assert drawing._repr_mimebundle_()["image/svg+xml"] == "<svg>•</svg>"
    drawing.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == "<svg>•</svg>".encode()
    assert [command for command, _ in calls] == [["dot", "-Tsvg"], ["dot", "-Tsvg"], ["dot", "-Tpng"]]
    assert {given for _, given in calls} == {"digraph { • }\n".encode()}


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_takes_the_graph() -> None:
    assert stretto.compile(DRAWN_QUERY).draw().svg().count("<svg") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "SELECT COUNT(*), SUM(b[volume * 2]) AS t FROM S WHERE A AS a; B+ AS b PARTITION BY [k] GROUP BY [k], a[region] "
            "WITHIN 10 minutes EVERY 1 minute",
            """\
window     [k·60 seconds, k·60 seconds + 600 seconds) for every integer k, measured by the stream's time
output     count: COUNT(*)
           t: SUM(b[(volume * 2)])
rows       one row for the matches wholly inside a window of 600 s, of which one begins every 60 s, by [k], a[region]
""",
        ),
        (
            "SELECT CAST(COUNT(*) AS DOUBLE), COUNT(DISTINCT a) AS n FROM S WHERE A AS a; B+ AS b PARTITION BY [k]",
            """\
output     count: CAST(COUNT(*) AS DOUBLE)
           n: COUNT(*)
           matches are told apart by the events of a
rows       one row for all matches, by k; of a stream when it ends
""",
        ),
        (
            "SELECT * FROM S WHERE A AS a; B+ AS b ORDER BY SUM(b[v]) - 2 * COUNT(b) DESC LIMIT 3 EVERY EVENT",
            """\
output     the 3 matches with the greatest SUM(b[v]) - 2 * COUNT(b); of equal ones the later start, the later end, the latest events
rows       chosen of the matches that an event completes
""",
        ),
        (
            "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] } RETURN a.x SAMPLE 20 SEED 9",
            """\
output     20 matches drawn at random, each set of so many as likely as any other (seed 9)
rows       chosen of all matches, by k; of a stream when it ends
""",
        ),
        (
            "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_any_match { [k] } RETURN TOTAL count(*), sum(b[].v) GROUP BY () EVERY EVENT",
            """\
output     count: COUNT(*)
           sum_b_v: SUM(b[v])
rows       one row for the matches that an event completes
""",
        ),
    ],
)
def test_what_is_asked_of_all_matches(text: str, told: str) -> None:
    explained = stretto.compile(text).explain() + "\n"
    assert told in explained
    assert "warning" not in explained
