"""``MATCH_RECOGNIZE`` as text and as a picture: what a clause means, its automaton, and what finding its matches costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from stretto.automata.rows import ACCEPT, RowAutomaton, build
from stretto.engines.rows.program import MOST_FAILED, RowProgram
from stretto.engines.rows.runner import RowRun
from stretto.errors import QueryError
from stretto.explaining.dot import CIRCLES, Drawing, caption, quoted
from stretto.explaining.text import section
from stretto.query import row_pattern as r

#: Positions that are listed, and drawn.
SHOWN = 40

_ROWS = {
    r.RowsPerMatch.ONE: "one row a match",
    r.RowsPerMatch.SHOW_EMPTY: "all rows of a match; one row for an empty match",
    r.RowsPerMatch.OMIT_EMPTY: "all rows of a match; none for an empty match",
    r.RowsPerMatch.WITH_UNMATCHED: "all rows of a match, one row for an empty match, and the rows of no match",
    r.RowsPerMatch.WINDOW: "each row, with the match that is found for it",
}


def explain_clause(parsed: r.RowQuery, bound: r.BoundRows | None) -> str:
    """Say what a clause means and how it runs, a paragraph a part; ``bound`` is ``None`` where the columns are not known."""
    program = None if bound is None else RowProgram(bound)
    automaton = build(parsed) if program is None else program.automaton
    own = parsed if bound is None else bound.parsed
    sections = [
        ("pattern", str(own.pattern)),
        ("partition", _partition(own)),
        ("order", _order(own)),
        *([("window", _window(own))] if own.within is not None else []),
        *([("frame", _frame(own.frame))] if own.frame is not None else []),
        ("rows", f"{_ROWS[own.rows]}; {_after(own)}"),
        ("automaton", "\n".join(_automaton(automaton))),
        ("conditions", "\n".join(_conditions(own, program))),
    ]
    if bound is None or program is None:
        sections.append(("schema", "none yet: columns and types are checked when the clause meets its rows"))
    else:
        read = ", ".join(bound.read) or "none"
        sections.append(
            ("columns", f"{read} ({len(bound.roots)} of {len(bound.schema)} are read to match and to measure)")
        )
        sections.append(("output", ", ".join(f"{one.name} {one.type}" for one in bound.output)))
        sections.append(("engine", "\n".join(_engine(program))))
        sections.append(("stream", _stream(program)))
    return "\n".join(section(title, body) for title, body in sections)


def _partition(query: r.RowQuery) -> str:
    if not query.partition_by:
        return "none: all rows are one"
    return f"by {', '.join(query.partition_by)}; NULL is a value like others"


def _order(query: r.RowQuery) -> str:
    if not query.order_by:
        return "none: rows stay in the order in which they are given"
    shown = (f"{one.column}{' descending' if one.descending else ''}" for one in query.order_by)
    nulls = {one.nulls_first for one in query.order_by}
    where = "NULL comes first" if nulls == {True} else "NULL comes last" if nulls == {False} else "NULL as each says"
    return f"by {', '.join(shown)}; {where}"


def _window(query: r.RowQuery) -> str:
    window = query.within
    assert window is not None
    size = f"{window.number:f}" if window.seconds is None else f"{window.seconds} s"
    return f"the last row's {query.order_by[0].column} is less than the first one's and {size}"


def _frame(frame: r.Frame) -> str:
    end = "all rows behind it" if frame.following is None else f"{frame.following:,} rows behind it"
    begins = "at it or later in the frame" if frame.seeks else "at it"
    return f"each row and {end}, which is all that its match reads; the match begins {begins}"


def _after(query: r.RowQuery) -> str:
    begins = {
        r.AfterMatch.PAST: "behind its last row",
        r.AfterMatch.NEXT: "at its second row",
        r.AfterMatch.FIRST: f"at its first {query.after_variable}",
        r.AfterMatch.LAST: f"at its last {query.after_variable}",
    }
    return f"the next match may begin {begins[query.after]}"


def _automaton(automaton: RowAutomaton) -> Iterator[str]:
    """What may come after each position, the preferred one first."""
    names = position_names(automaton)
    several = "; numbers tell the places of a variable apart" if any(":" in name for name in names) else ""
    yield f"{len(names)} position{'s' * (len(names) != 1)}, {automaton.edges} edges; what may come next, the preferred first{several}"
    width = max(map(len, ["start", *names[:SHOWN]]))
    yield f"{'start':<{width}}  {_followers(automaton.later, names)}"
    if automaton.first != automaton.later:
        yield f"{'':<{width}}  at the first row of a partition: {_followers(automaton.first, names)}"
    for name, to, ends in list(zip(names, automaton.followers, automaton.ends, strict=True))[:SHOWN]:
        last = (
            ""
            if bool(ends) == (ACCEPT in to)
            else "; at the last row of a partition: the end"
            if ends
            else "; not the end"
        )
        yield f"{name:<{width}}  {_followers(to, names)}{last}"
    if len(names) > SHOWN:
        yield f"… {len(names) - SHOWN:,} more"


def _followers(to: Sequence[int], names: Sequence[str]) -> str:
    shown = ["the end" if q == ACCEPT else names[q] for q in to[:SHOWN]]
    more = [f"{len(to) - SHOWN:,} more"] if len(to) > SHOWN else []
    return ", ".join(shown + more) or "nothing"


def position_names(automaton: RowAutomaton) -> list[str]:
    """The positions by their variables, with numbers where a variable has several; an excluded one in ``{- -}``."""
    names = [r.identifier(automaton.variables[v]) for v in automaton.variable]
    seen: dict[str, int] = {}
    found = []
    for name, excluded in zip(names, automaton.excluded, strict=True):
        seen[name] = seen.get(name, 0) + 1
        number = f":{seen[name]}" if names.count(name) > 1 else ""
        found.append(f"{{- {name}{number} -}}" if excluded else f"{name}{number}")
    return found


def _conditions(query: r.RowQuery, program: RowProgram | None) -> Iterator[str]:
    """The condition of each variable; with a program, in parts, by how they are computed."""
    for variable in query.variables:
        name = r.identifier(variable)
        if variable not in query.define or variable not in (program.bound.conditions if program else query.define):
            yield f"{name}: every row"
            continue
        if program is None:
            yield f"{name}: {query.define[variable]}"
            continue
        for plain in program.plain.get(variable, ()):
            yield f"{name}: {plain} (computed for whole columns)"
        for asked in program.history.asked.get(variable, ()):
            yield f"{name}: {asked} (asked on the way: it reads rows of the match so far)"


def _engine(program: RowProgram) -> Iterator[str]:
    """How the matches are found, and what that costs."""
    asked = sorted(map(r.identifier, program.history.asked))
    edges = program.automaton.edges
    yield "rows: back through each partition for what can be completed, then forward by preference"
    if program.programs is None:
        yield f"it never goes back: at most {edges} steps a row, and as many for each row of a match"
        return
    causes = [f"the condition{'s' * (len(asked) > 1)} of {', '.join(asked)}"] if asked else []
    causes += ["the frame"] if program.bound.parsed.frame is not None and not asked else []
    causes += ["WITHIN"] if program.bound.parsed.within is not None else []
    yield f"it may go back, as {' and '.join(causes)} read{'s' * (len(asked) + len(causes) < 3)} rows of the match so far"
    yield (
        "what failed is not gone through again: a row, a position, and what a later condition may still read "
        f"({len(program.programs.kind)} values at most)"
    )
    yield f"more than {MOST_FAILED:,} such failures of one match are a LimitError, which names the row"


def _stream(program: RowProgram) -> str:
    """What a stream of rows holds."""
    try:
        run = RowRun(program, list(program.bound.read), capacity=1)
    except QueryError as error:
        return f"refused: {error.message}"
    back = max(run.back, int(run.rules.shown_back))
    before = f", {back} row{'s' * (back > 1)} before it" if back else ""
    last = "the last row" if run.kept_back == 1 else f"the last {run.kept_back} rows"
    forgotten = "until time has passed it" if run.forgets else "for ever"
    return (
        f"held are the rows from the first that may still begin a match{before}; of each partition {last}, {forgotten}"
    )


def draw_clauses(clauses: Iterable[tuple[str, r.RowQuery]]) -> Drawing:
    """Draw the automata of clauses, each with its title: a circle for each position, and edges numbered by preference.

    An edge to the double circle ends the match. What holds at the first or last row of a partition only is dashed. Positions
    of ``{- -}`` are dotted.
    """
    given = list(clauses)
    lines = [
        "digraph rows {",
        *CIRCLES,
    ]
    for number, (title, query) in enumerate(given):
        body = list(_drawn(f"c{number}_" if len(given) > 1 else "", build(query), query))
        if len(given) > 1:
            lines += [f"  subgraph cluster_{number} {{"]
            lines += [f"  {one}" for one in (*caption([title, *_about(query)]), *body)] + ["  }"]
        else:
            lines += [*caption(_about(query)), *body]
    return Drawing("\n".join([*lines, "}", ""]))


def _drawn(prefix: str, automaton: RowAutomaton, query: r.RowQuery) -> Iterator[str]:
    names = position_names(automaton)[:SHOWN]
    yield f"  {prefix}start [shape=point];"
    for at, name in enumerate(names):
        variable = automaton.variables[automaton.variable[at]]
        condition = query.define.get(variable)
        tooltip = "" if condition is None else f', tooltip="{quoted(str(condition), 200)}"'
        style = ", style=dotted" if automaton.excluded[at] else ""
        yield f'  {prefix}p{at} [label="{quoted(name, 30)}"{tooltip}{style}];'
    yield f'  {prefix}end [shape=doublecircle, label="end"];'
    if len(automaton.variable) > SHOWN:
        yield f'  {prefix}more [shape=plaintext, label="… {len(automaton.variable) - SHOWN:,} more positions"];'
    same = automaton.first == automaton.later
    yield from _edges(prefix, f"{prefix}start", automaton.later, "" if same else "other rows: ")
    if not same:
        yield from _edges(prefix, f"{prefix}start", automaton.first, "first row: ", "style=dashed, ")
    for at, to in list(enumerate(automaton.followers))[:SHOWN]:
        yield from _edges(prefix, f"{prefix}p{at}", to, "")
        if automaton.ends[at] and ACCEPT not in to:
            yield f'  {prefix}p{at} -> {prefix}end [style=dashed, label="last row"];'


def _about(query: r.RowQuery) -> Iterator[str]:
    if query.partition_by:
        yield f"by {', '.join(query.partition_by)}"
    if query.order_by:
        yield f"ordered by {', '.join(one.column for one in query.order_by)}"
    if query.within is not None:
        yield f"within {query.within}"


def _edges(prefix: str, source: str, to: Sequence[int], when: str, style: str = "") -> Iterator[str]:
    """Edges with their places in the order of preference, where there are several."""
    for place, q in enumerate(to, 1):
        target = f"{prefix}end" if q == ACCEPT else f"{prefix}p{q}" if q < SHOWN else f"{prefix}more"
        label = f"{when}{place if len(to) > 1 else ''}".removesuffix(": ")
        yield f"  {source} -> {target}" + (f' [{style}label="{label}"];' if label else ";")
