"""The exact texts of ``explain`` and ``draw`` for SASE+."""

# ruff: noqa: E501 - texts as they are printed

from __future__ import annotations

import pytest

import stretto

Q3 = """PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
  [symbol]
  and a[1].volume > 1000
  and a[i].price > avg(a[i-1].price)
  and b.volume < 80%*a[a.LEN].volume }
WITHIN 1 hour"""
Q3_SCHEMA = {"type": "string", "symbol": "string", "price": "double", "volume": "int64", "ts": "timestamp[ms]"}

SHORTCUT = """PATTERN SEQ(A+ a[], (B|C) b)
WHERE skip_till_any_match { [k] and a[1].v > 3 and a[i].v > 1 and b.v IN (1, 2) }
WITHIN 20 events RETURN a.LEN AS n, b.v LIMIT 2"""

NEGATED = """PATTERN SEQ(~(C m), A+ a[], ~((D|E) n), B+ b[], ~(C o))
WHERE skip_till_next_match { n.v > a[i].v and (b[i].v > b[i-1].v or b[i].v = 0) and b[i].v < 9 and b[1].v > a[i].v and o.v = b.LEN }
WITHIN 5 [ts]"""

STRICT = """PATTERN SEQ(A a, B+ b[])
WHERE strict_contiguity { [k] and max(b[].v) > 5 and avg(b[..i].v) > 2 }
OUTPUT non_overlap"""

SINGLE = "PATTERN SEQ(A a)"
SCHEMA = {"type": "string", "k": "int64", "v": "int64", "ts": "int64"}

Q3_BOUND = """\
query      PATTERN SEQ(Stock+ a[], Stock b)
           WHERE skip_till_next_match(a[], b) {
             [symbol]
             and a[1].volume > 1000
             and a[i].price > avg(a[i-1].price)
             and b.volume < 80%*a[a.LEN].volume }
           WITHIN 1 hour
pattern    Stock+ a[], Stock b
selection  skip_till_next_match: what does not fit is skipped, the next event that fits is selected
partition  by symbol; events where one of them is NULL are in no partition
window     end − start ≤ 3600 s, measured by the stream's time
output     a, b
automaton  a[1]  begin    Stock: a[1].volume > 1000
           a[i]  take     Stock: a[i].price > avg(a[..i-1].price) AND within the window
                 ignore   not take
                 proceed  the event may begin b
           b     begin    Stock: b.volume < (0.8 * a[a.LEN].volume) AND within the window
                 ignore   not begin
splits     take-proceed at a[i]; ignore-proceed at a[i]
values V   1: sum(a.price)
           2: count(a.price)
           3: last(a.volume)
masks M    a[i]: 1, 2, 3
           b: 3
merging    runs with the same state and masked V become one
engine     nfab: a run for each partial match, with what later events are compared with in registers
           not tecs: a condition relates events: a[i].price > avg(a[..i-1].price)
           not timed: it runs CEQL, where conditions relate events only by equal keys and by how far apart they are
           not afa: it keeps what it needs to take output back, which events in order never ask for; with speculation= it runs this query"""

SHORTCUT_BOUND = """\
query      PATTERN SEQ(A+ a[], (B|C) b)
           WHERE skip_till_any_match { [k] and a[1].v > 3 and a[i].v > 1 and b.v IN (1, 2) }
           WITHIN 20 events RETURN a.LEN AS n, b.v LIMIT 2
pattern    A+ a[], (B|C) b
selection  skip_till_any_match: any event may be skipped, one that fits as well: every combination
partition  by k; events where one of them is NULL are in no partition
window     end − start ≤ 20 events
output     n, b_v; at most 2 per triggering event, latest start first
automaton  a[1]  begin    A: a[1].v > 3
           a[i]  take     A: a[i].v > 1 AND within the window
                 ignore   always
                 proceed  the event may begin b
           b     begin    B|C: b.v IN (1, 2) AND within the window
                 ignore   always
splits     take-proceed at a[i]; ignore-proceed at a[i]; take-ignore at a[i]; begin-ignore at b
engine     tecs: conditions relate events only by equal k (equivalence test): constant time per event whatever the window, output-linear delay
           not nfab: it has a run for each partial match, with registers that no condition of this query needs
           not timed: it keeps the events of the window, for gaps, windows inside and NOT at an end, of which this query has none
           not afa: it puts events in the order of a time column, and none is named"""

NEGATED_BOUND = """\
query      PATTERN SEQ(~(C m), A+ a[], ~((D|E) n), B+ b[], ~(C o))
           WHERE skip_till_next_match { n.v > a[i].v and (b[i].v > b[i-1].v or b[i].v = 0) and b[i].v < 9 and b[1].v > a[i].v and o.v = b.LEN }
           WITHIN 5 [ts]
pattern    ~(C m), A+ a[], ~((D|E) n), B+ b[], ~(C o)
selection  skip_till_next_match: what does not fit is skipped, the next event that fits is selected
partition  none: one stream
window     end − start ≤ 5, measured by [ts]
output     a, b
automaton  a[1]        begin    A
           a[i]        take     A: within the window
                       ignore   not take
                       proceed  the event may begin b[1]
           b[1]        begin    B: (for every i: b[1].v > a[i].v) AND within the window
                       ignore   not begin
           b[i]        take     B: b[i].v < 9 AND (b[i].v > b[i-1].v OR b[i].v = 0) AND within the window
                       ignore   not take
                       proceed  true, to the end, after each event that is selected
           ~(C m)      negated  C
           ~((D|E) n)  negated  D|E: (for every i: n.v > a[i].v)
           ~(C o)      negated  C: o.v = b.LEN
splits     take-proceed at a[i]; ignore-proceed at a[i]
values V   1: last(b.v)
           2: b.LEN
masks M    a[i]: nothing
           b[1]: nothing
           b[i]: 1, 2
merging    no: a condition on every a[i] looks at the events of single runs
engine     nfab: a run for each partial match, with what later events are compared with in registers
           not tecs: a condition relates events: b[1].v > a[i].v
           not timed: it runs CEQL, where conditions relate events only by equal keys and by how far apart they are
           not afa: ~(C m) stands at an end of the pattern, where it holds until a time: not on a disordered stream"""

STRICT_BOUND = """\
query      PATTERN SEQ(A a, B+ b[])
           WHERE strict_contiguity { [k] and max(b[].v) > 5 and avg(b[..i].v) > 2 }
           OUTPUT non_overlap
pattern    A a, B+ b[]
selection  strict_contiguity: selected events are neighbours in the stream
partition  none: one stream, in which the events of a match have the same k
window     none: a match may last as long as the stream; partial matches are kept until nothing can reach them
output     a, b; of a partition's matches that overlap one, then all its runs are dropped
automaton  a     begin    A
           b[1]  begin    B
                 ignore   never
           b[i]  take     B: avg(b[..i].v) > 2.0
                 ignore   never
                 proceed  max(b[].v) > 5, to the end, after each event that is selected
splits     none: a run makes one move on an event
values V   1: first(a.key)
           2: sum(b.v)
           3: carry of sum(b.v)
           4: count(b.v)
           5: max(b.v)
masks M    b[1]: 1
           b[i]: 1, 2, 3, 4, 5
merging    no: OUTPUT non_overlap compares the matches of single runs
engine     nfab: a run for each partial match, with what later events are compared with in registers
           not tecs: a condition relates events: avg(b[..i].v) > 2.0
           not timed: it runs CEQL, where conditions relate events only by equal keys and by how far apart they are
           not afa: it puts events in the order of a time column, and none is named"""

SINGLE_BOUND = """\
query      PATTERN SEQ(A a)
pattern    A a
selection  skip_till_next_match: what does not fit is skipped, the next event that fits is selected
partition  none: one stream
window     none: a match may last as long as the stream; partial matches are kept until nothing can reach them
output     a
automaton  a     begin    A
splits     none: a run makes one move on an event
values V   empty: a run is its state, its start and its events
masks M    none: no run waits
merging    runs with the same state and masked V become one
engine     nfab: a run for each partial match, with what later events are compared with in registers
           not tecs: skip_till_next_match selects the next event that fits, whatever comes later
           not timed: it runs CEQL, where conditions relate events only by equal keys and by how far apart they are
           not afa: it puts events in the order of a time column, and none is named"""

Q3_UNBOUND = """\
query      PATTERN SEQ(Stock+ a[], Stock b)
           WHERE skip_till_next_match(a[], b) {
             [symbol]
             and a[1].volume > 1000
             and a[i].price > avg(a[i-1].price)
             and b.volume < 80%*a[a.LEN].volume }
           WITHIN 1 hour
pattern    Stock+ a[], Stock b
selection  skip_till_next_match: what does not fit is skipped, the next event that fits is selected
conditions a[1].volume > 1000 AND a[i].price > avg(a[..i-1].price) AND b.volume < (0.8 * a[a.LEN].volume)
partition  by symbol; events where one of them is NULL are in no partition
window     end − start ≤ 3600 s, measured by the stream's time
output     a, b
schema     none yet: attributes and types are checked when the query meets its events"""

Q3_DRAWN = """\
digraph NFAb {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  label="by symbol; within 1 h"; fontname="Helvetica"; fontsize=10;
  "" [shape=none, width=0];
  "" -> "a[1]";
  "a[1]";
  "a[i]";
  "b";
  "F" [shape=doublecircle];
  "a[1]" -> "a[i]" [label="begin Stock\\na[1].volume > 1000"];
  "a[i]" -> "a[i]" [label="take Stock\\na[i].price > avg(a[..i-1].price)"];
  "a[i]" -> "a[i]" [style=dashed, headport=s, tailport=s, label="ignore: not take"];
  "a[i]" -> "b" [arrowhead=empty, label="proceed: the event may begin b"];
  "b" -> "F" [label="begin Stock\\nb.volume < (0.8 * a[a.LEN].volume)"];
  "b" -> "b" [style=dashed, headport=s, tailport=s, label="ignore: not begin"];
}
"""

NEGATED_DRAWN = """\
digraph NFAb {
  rankdir=LR;
  node [shape=circle, fontname="Helvetica", fontsize=11];
  edge [fontname="Helvetica", fontsize=10];
  label="within 5 [ts]"; fontname="Helvetica"; fontsize=10;
  "" [shape=none, width=0];
  "" -> "a[1]";
  "a[1]";
  "a[i]";
  "b[1]";
  "b[i]";
  "F" [shape=doublecircle];
  "a[1]" -> "a[i]" [label="begin A"];
  "a[i]" -> "a[i]" [label="take A"];
  "a[i]" -> "a[i]" [style=dashed, headport=s, tailport=s, label="ignore: not take"];
  "a[i]" -> "b[1]" [arrowhead=empty, label="proceed: the event may begin b[1]"];
  "b[1]" -> "b[i]" [label="begin B\\n(for every i: b[1].v > a[i].v)"];
  "b[1]" -> "b[1]" [style=dashed, headport=s, tailport=s, label="ignore: not begin"];
  "b[i]" -> "b[i]" [label="take B\\nb[i].v < 9 AND\\n(b[i].v > b[i-1].v OR b[i].v = 0)"];
  "b[i]" -> "b[i]" [style=dashed, headport=s, tailport=s, label="ignore: not take"];
  "b[i]" -> "F" [arrowhead=empty, label="proceed: true, to the end, after each event that is selected"];
  "~(C m)" [shape=box, style=dotted, label="~(C m)"];
  {rank=same; "~(C m)" -> "a[1]" [style=dotted, arrowhead=none];}
  "~((D|E) n)" [shape=box, style=dotted, label="~((D|E) n)\\n(for every i: n.v > a[i].v)"];
  {rank=same; "~((D|E) n)" -> "b[1]" [style=dotted, arrowhead=none];}
  "~(C o)" [shape=box, style=dotted, label="~(C o)\\no.v = b.LEN"];
  {rank=same; "~(C o)" -> "F" [style=dotted, arrowhead=none];}
}
"""


@pytest.mark.parametrize(
    ("text", "schema", "roles", "expected"),
    [
        (Q3, Q3_SCHEMA, {"time": "ts"}, Q3_BOUND),
        (Q3, None, {}, Q3_UNBOUND),
        (SHORTCUT, SCHEMA, {}, SHORTCUT_BOUND),
        (NEGATED, SCHEMA, {"time": "ts"}, NEGATED_BOUND),
        (STRICT, SCHEMA, {}, STRICT_BOUND),
        (SINGLE, SCHEMA, {}, SINGLE_BOUND),
    ],
    ids=["query 3", "unbound", "shortcut", "negated", "strict", "single"],
)
def test_explain(text: str, schema: dict[str, str] | None, roles: dict[str, str], expected: str) -> None:
    assert stretto.compile(text, schema, **roles).explain() == expected


@pytest.mark.parametrize(
    ("text", "schema", "expected"),
    [(Q3, Q3_SCHEMA, Q3_DRAWN), (NEGATED, SCHEMA, NEGATED_DRAWN)],
    ids=["query 3", "negated"],
)
def test_draw(text: str, schema: dict[str, str], expected: str) -> None:
    drawing = stretto.compile(text, schema, time="ts").draw()
    assert drawing.source == str(drawing) == expected


@pytest.mark.parametrize(("text", "expected"), [(Q3, Q3_DRAWN), (NEGATED, NEGATED_DRAWN)], ids=["query 3", "negated"])
def test_without_a_schema_the_automaton_is_the_same(text: str, expected: str) -> None:
    assert stretto.compile(text).draw().source == stretto.Matcher(text, time="ts").draw().source == expected


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { b.x > a.x + 1 } WITHIN 10 minutes", "b.x > (a.x + 1)"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.p.q = 'u' AND b.type = 'B' } WITHIN 3 EVENTS", "'u'"),
        (
            "PATTERN SEQ(A a, B+ b[]) WHERE strict_contiguity { avg(b[].x) > 2.5 } WITHIN 10 [d] RETURN sum(b[].y) AS s",
            "2.5",
        ),
        (
            "PATTERN SEQ(A a, B? b, (C c, D d)+) WHERE skip_till_any_match { c[1].at > a.at } WITHIN 10",
            "c[1].at > a.at",
        ),
    ],
    ids=["numbers", "fields", "averages", "groups"],
)
def test_types_that_nobody_knows_are_drawn(text: str, part: str) -> None:
    assert part in str(stretto.compile(text).draw())
    with pytest.raises(stretto.QueryError, match=r"cannot compare a\.x \(int64\) with a string"):
        stretto.compile("PATTERN SEQ(A a, B b) WHERE skip_till_any_match { a.x > 3 AND a.x = 'u' } WITHIN 5").draw()


def test_without_a_condition() -> None:
    assert "conditions none but the event types" in stretto.compile(SINGLE).explain()


def test_quotes_and_long_conditions_in_drawings() -> None:
    names = ", ".join(f"'{i:04}'" for i in range(30))
    text = f"PATTERN SEQ(A a, B b) WHERE skip_till_next_match {{ a.k = 'x\"y' and b.k IN ({names}) }}"
    label = str(stretto.compile(text, {"type": "string", "k": "string"}).draw())
    assert "begin A\\na.k = 'x\\\"y'" in label
    assert "…" in label
    assert "0029" not in label
