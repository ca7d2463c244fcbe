"""A SASE+ query as an AFA: what runs it on a disordered stream.

The automaton is that of section 3.2 of the SASE+ paper (:mod:`stretto.automata.nfab`), with its value vector as the register. A
state waits for the first event of a component, or is inside a Kleene plus. Begin and take are arcs that consume an event and are
labelled with its component; ignore is an ignorable arc (appendix D of the AFA paper), with a fence where the strategy asks for the
next match. As a run proceeds only with an event that begins the next component (step 6), there are no ε-arcs: what proceed asks is
part of the fence of that begin. Where the last component is a Kleene plus, an arc of its own leads to the final state with each event
that may be the last.

A negation between two components is a state as well: one in which such an event has come since the last selected one.

>>> import pyarrow as pa
>>> from stretto.matching.compiled import compile_query
>>> schema = {"type": pa.string(), "t": pa.int64(), "v": pa.int64()}
>>> query = compile_query("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.v > a.v } WITHIN 9", schema, time="t")
>>> afa = sase_afa(query.bound)
>>> for arc in afa.arcs:
...     print(arc.source, "->", arc.target, "when", arc.when)
a -> b when e.type = 'A' AND NOT (e.v IS NULL)
a -> b when e.type = 'A' AND e.v IS NULL
b -> match when e.type = 'B' AND r.a_v_known = TRUE AND e.v > r.a_v
b -> b when NOT (e.type = 'B')
b -> b when e.type = 'B' AND NOT (r.a_v_known = TRUE AND e.v > r.a_v)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from stretto.automata.nfab import Edge, Kind, Negation, Nfab, build, own_index
from stretto.automata.sase_register import (
    NEVER,
    Every,
    Moment,
    Read,
    Same,
    ValueRegister,
    all_of,
    any_of,
    negation_of,
    of_event,
)
from stretto.errors import QueryError, Span, placed
from stretto.query import predicate as p
from stretto.query.afa import Afa, Arc, Emit, Field
from stretto.query.afa import Kind as ArcKind
from stretto.query.moving import refuse_moving
from stretto.query.passes.bind import AnyBound, measure
from stretto.query.passes.bind_sase import BoundSase
from stretto.query.passes.plain import plain
from stretto.query.sase import Aggregate, Component, Element, Index, Length, Range, Selection
from stretto.query.typing import kind_of


def sase_afa(query: BoundSase, *, attributes: Iterable[str] | None = None) -> Afa:
    """Make the AFA of a query; an output's selected events, with their labels, are a match.

    Parameters
    ----------
    query
        The bound query.
    attributes
        The attributes that the automaton's events have; ``None``: those that the query reads.

    Raises
    ------
    QueryError
        The query says what no AFA does: LIMIT and ``non_overlap``, which choose among matches; a negation at an end; a window of
        events, or of another attribute than the time; conditions that no register can tell.
    LimitError
        What the conditions remember has too many cases.
    """
    with placed(query.parsed.text):
        refuse_moving(query.parsed.moving)
        return _Compiler(query).afa(attributes)


@dataclass(frozen=True)
class _Asked:
    """What an edge asks, as conditions on the event alone and on event and register."""

    alone: p.Predicate
    rest: p.Predicate

    @property
    def whole(self) -> p.Predicate:
        return all_of([self.alone, self.rest])

    @property
    def denied(self) -> list[p.Predicate]:
        """Conditions that exclude each other, one of which holds where the edge's does not: the first asks the event alone."""
        if self.rest == p.And(()):
            return [negation_of(self.alone)]
        return [negation_of(self.alone), all_of([self.alone, negation_of(self.rest)])]


class _Compiler:
    """Arcs and states of one query."""

    def __init__(self, query: BoundSase) -> None:
        self.query = query
        self.window = window_of(query)
        _refuse_choices(query)
        self.nfab = build(query)
        self.pairs = self.nfab.pairs
        self.last = len(self.pairs) - 1
        _refuse_variants(self.nfab)
        places = self.nfab.places
        #: Of each component: which may follow it, and whether it may be the last; and which may be the first.
        self.follow: list[list[int]] = [[] for _ in self.pairs]
        self.final_at = [False] * len(self.pairs)
        for at, steps, final in zip(places.component, places.follow, places.final, strict=True):
            self.follow[at] = [places.component[step.place] for step in steps]
            self.final_at[at] = final
        self.first = [places.component[step.place] for step in places.first]
        self.register = ValueRegister(self.nfab)
        self.arcs: list[Arc] = []
        self.final = _free("match", (one.variable for one in query.parsed.components))
        for negation in self.nfab.negations:
            if not 0 <= negation.left < self.last:
                raise _mistake(
                    f"{negation.component} stands at an end of the pattern, where it holds until a time: not on a disordered stream",
                    negation.component.span,
                )

    def afa(self, attributes: Iterable[str] | None) -> Afa:
        # All conditions first: they say what the register holds.
        begins = [self._asked(at, Kind.BEGIN) for at in range(len(self.pairs))]
        takes = [self._asked(at, Kind.TAKE) if pair.take is not None else None for at, pair in enumerate(self.pairs)]
        leaves = [self._proceed(at, None) for at in range(len(self.pairs))]
        completes = [
            {move: self._proceed(at, move) for move in (Kind.BEGIN, Kind.TAKE)} if final else {}
            for at, final in enumerate(self.final_at)
        ]
        negated = [self._negated(at) for at in range(len(self.pairs))]
        start = (
            self._waits(0)
            if self.first == [0]
            else _free("start", (one.variable for one in self.query.parsed.components))
        )
        for at in range(len(self.pairs)):
            if at in self.first:
                self._select(at, Kind.BEGIN, start, begins[at].whole, completes[at])
            before = [one for one in range(at) if at in self.follow[one] and not self.pairs[one].component.kleene]
            if before:
                self._select(at, Kind.BEGIN, self._waits(at), begins[at].whole, completes[at])
                self._skip(at, self._waits(at), begins[at], negated[at - 1])
            if (take := takes[at]) is None:
                continue
            inside = self._inside(at)
            self._select(at, Kind.TAKE, inside, take.whole, completes[at])
            for after in self.follow[at]:
                self._select(after, Kind.BEGIN, inside, all_of([begins[after].whole, leaves[at]]), completes[after])
            self._skip(at, inside, take, negated[at])
        used = self.query.tested if attributes is None else attributes
        kinds = self.query.schema.attributes
        return Afa(
            events={name: kinds[name] for name in used},
            register=self.register.types,
            initial=self.register.initial,
            start=start,
            arcs=tuple(self.arcs),
            finals={self.final: Emit.EVERY},
            window=self.window,
            partition_by=self.query.partition_by if self.nfab.partitioned else (),
        )

    # -- states -------------------------------------------------------------------------------------------------------

    def _waits(self, at: int) -> str:
        """The state that waits for the first event of a component."""
        component = self.pairs[at].component
        return f"{component.variable}[1]" if component.kleene else component.variable

    def _inside(self, at: int) -> str:
        return f"{self.pairs[at].component.variable}[i]"

    def _blocked(self, at: int) -> str:
        """The state inside a Kleene plus in which a negated event has come behind the last one taken."""
        names = ", ".join(one.component.variable for one in self._between(at))
        return f"{self._inside(at)}, {names}"

    def _between(self, at: int) -> list[Negation]:
        """The negations behind a component."""
        return [one for one in self.nfab.negations if one.left == at]

    # -- arcs ---------------------------------------------------------------------------------------------------------

    def _arc(
        self,
        source: str,
        target: str,
        when: p.Predicate,
        then: tuple[p.Operand, ...] | None = None,
        kind: ArcKind = ArcKind.CONSUME,
        label: int = -1,
    ) -> None:
        if when != NEVER:
            fence = None if when == p.And(()) else when
            self.arcs.append(Arc(f"a{len(self.arcs)}", source, target, fence, then, kind, label=label))

    def _select(
        self, at: int, move: Kind, source: str, when: p.Predicate, completes: Mapping[Kind, p.Predicate]
    ) -> None:
        """The arcs with which a component begins with an event, or takes one."""
        kleene = self.pairs[at].component.kleene
        if self.final_at[at]:
            whole = all_of([when, completes[move]]) if kleene else when
            self._arc(source, self.final, whole, label=at)
        sources = [source]
        if move is Kind.TAKE and self._denies(at):
            sources.append(self._blocked(at))
        for target in [self._inside(at)] if kleene else map(self._waits, self.follow[at]):
            for one in sources:
                for tests, row in self.register.updates(at, move):
                    self._arc(one, target, all_of([when, *tests]), row, label=at)

    def _denies(self, at: int) -> bool:
        """Whether a negation stands behind a component; where no event may be left out, it says nothing."""
        return bool(self._between(at)) and not self.nfab.contiguous

    def _skip(self, at: int, state: str, move: _Asked, negated: p.Predicate) -> None:
        """What happens to an event that is not selected: it is ignored, unless it is a negated one.

        ``at`` is the component whose Kleene plus the state is inside of, or whose first event it waits for.
        """
        if self.nfab.contiguous:
            return
        skips = [p.And(())] if self.nfab.selection is Selection.ANY else move.denied
        for when in skips:
            self._arc(state, state, all_of([when, negation_of(negated)]), kind=ArcKind.IGNORE)
        if negated == NEVER or state != self._inside(at):
            return
        blocked = self._blocked(at)
        for when in skips:
            self._arc(state, blocked, all_of([when, negated]))
            self._arc(blocked, blocked, when, kind=ArcKind.IGNORE)

    # -- conditions ---------------------------------------------------------------------------------------------------

    def _asked(self, at: int, move: Kind) -> _Asked:
        """What begin or take of a component asks."""
        pair = self.pairs[at]
        edge = pair.begin if move is Kind.BEGIN else pair.take
        assert edge is not None
        alone = [*self._of_type(pair.component), *self._plain(edge, pair.component)]
        moment = Moment(at, move)
        rest = [self._related(one, moment) for one in edge.related]
        rest += [self._each(variable, one, moment) for variable, one in edge.each]
        if not self.nfab.partitioned:
            tests = [self._same_key(name, first=at == 0 and move is Kind.BEGIN) for name in self.query.partition_by]
            (alone if at == 0 and move is Kind.BEGIN else rest).extend(tests)
        return _Asked(all_of(alone), all_of(rest))

    def _proceed(self, at: int, move: Kind | None) -> p.Predicate:
        """What the proceed edge of a component asks, before an event or with one that has just been selected."""
        edge, moment = self.pairs[at].proceed, Moment(at, move)
        if not self.pairs[at].component.kleene:
            return p.And(())
        found = [self._related(one, moment) for one in (*edge.alone, *edge.related)]
        return all_of([*found, *(self._each(variable, one, moment) for variable, one in edge.each)])

    def _negated(self, at: int) -> p.Predicate:
        """Whether an event is one that must not come behind the last one of a component."""
        if not self._denies(at):
            return NEVER
        found = []
        for negation in self._between(at):
            component = negation.component
            self._refuse_later(negation, at)
            moment = Moment(-1, variable=component.variable)
            parts = [*self._of_type(component), *self._plain(negation.edge, component)]
            parts += [self._related(one, moment) for one in negation.edge.related]
            parts += [self._each(variable, one, moment) for variable, one in negation.edge.each]
            found.append(all_of(parts))
        return any_of(found)

    def _refuse_later(self, negation: Negation, at: int) -> None:
        """A negated event is tested when it comes."""
        parts = (*negation.edge.related, *(one for _, one in negation.edge.each))
        for name, span in ((name, span) for one in parts for name, span in p.attributes(one).items()):
            variable = self.query.parsed.references[name].variable
            if self.register.numbers.get(variable, -1) > at:
                raise _mistake(
                    f"{name} is not known yet when '{negation.component.variable}' comes, and it is decided then",
                    span,
                )

    def _of_type(self, component: Component) -> list[p.Predicate]:
        schema = self.query.schema
        name = schema.type or schema.stream
        if name is None:
            return [] if self.query.parsed.streams[0] in component.types else [NEVER]
        own = Field(f"e.{name}")
        if len(component.types) == 1:
            return [p.Comparison("=", own, p.Constant(component.types[0]))]
        return [p.In(own, tuple(map(p.Constant, component.types)))]

    def _plain(self, edge: Edge, component: Component) -> list[p.Predicate]:
        """What an edge asks of its own event."""
        own = own_index(edge.kind, component)
        return [of_event(plain(one, self.query.parsed, own)) for one in edge.alone]

    def _related(self, conjunct: p.Predicate, moment: Moment) -> p.Predicate:
        return self.register.condition(conjunct, moment, self.query.parsed.references)

    def _same_key(self, name: str, *, first: bool) -> p.Predicate:
        """An equivalence test, where it does not split the stream; one NaN equals another."""
        here = Field(f"e.{name}")
        if first:
            return p.Not(p.IsNull(here))
        kind = kind_of(self.query.schema.attributes[name])
        if kind in ("decimal", "other"):
            own = self.query.schema.attributes[name]
            raise _mistake(f"[{name}] under strict_contiguity: no register can keep {own}", None)
        variable = self.pairs[0].component.variable
        index = Index.FIRST if self.pairs[0].component.kleene else Index.ONLY
        ((_, value),) = self.register.read(Element(variable, index, name), Moment(-1))
        assert value is not None
        same = p.Comparison("=", here, value)
        if kind != "float":
            return same
        return p.Or((same, p.And((p.Comparison("!=", here, here), p.Comparison("!=", value, value)))))

    # -- conditions on every a[i] -------------------------------------------------------------------------------------

    def _each(self, variable: str, conjunct: p.Predicate, moment: Moment) -> p.Predicate:
        """A condition that holds for every ``a[i]``, by a value of all of them."""
        references: dict[str, Read] = dict(self.query.parsed.references)
        alternatives = conjunct.parts if isinstance(conjunct, p.Or) else (conjunct,)
        mine = [one for one in alternatives if self._elements(one, variable)]
        others = [one for one in alternatives if not self._elements(one, variable)]
        if all(len(self._elements(one, variable)) == len(p.attributes(one)) for one in mine):
            names = {name: attribute for one in mine for name, attribute in self._elements(one, variable).items()}
            told = p.renamed(any_of(mine), names)
            whole = self._known_as(references, f"every {variable}[i]: {told}", Every(variable, told))
            every: p.Predicate = p.Comparison("=", whole, p.Constant(True))
        elif len(mine) > 1:
            raise self._no_each(variable, conjunct, "two of its alternatives ask for every i")
        else:
            every = self._worst(variable, mine[0], references)
        return any_of([self.register.condition(one, moment, references) for one in (every, *others)])

    def _elements(self, node: p.Predicate, variable: str) -> dict[str, str]:
        """The references of a condition to ``a[i]``, with their attributes."""
        references = {name: self.query.parsed.references[name] for name in p.attributes(node)}
        return {
            name: one.attribute
            for name, one in references.items()
            if isinstance(one, Element) and (one.variable, one.index) == (variable, Index.EACH)
        }

    def _worst(self, variable: str, node: p.Predicate, references: dict[str, Read]) -> p.Predicate:
        """A comparison for every ``a[i]``: of the least or the greatest."""
        inner = node.part if isinstance(node, p.Not) else node
        elements = self._elements(node, variable)
        if not isinstance(inner, p.Comparison) or len(elements) > 1:
            raise self._no_each(variable, node, "it is no comparison of one attribute")
        ((name, attribute),) = elements.items()
        left, op, right = inner.left, inner.op, inner.right
        if name in p.attributes(right):
            left, op, right = right, p.FLIPPED[op], left
        if name in p.attributes(right):
            raise self._no_each(variable, node, f"{name} stands on both sides")
        if op in ("=", "!="):
            if op == "!=" or isinstance(node, p.Not) or not isinstance(left, p.Attribute):
                raise self._no_each(variable, node, "a register cannot tell that all of them differ from something")
            same = self._known_as(references, f"same {variable}[i].{attribute}", Same(variable, attribute))
            first = self._known_as(references, f"{variable}[1].{attribute}", Element(variable, Index.FIRST, attribute))
            return p.And((p.Comparison("=", same, p.Constant(True)), p.Comparison("=", first, right)))
        return self._by_extreme(variable, node, p.Comparison(op, left, right), name, attribute, references)

    def _by_extreme(
        self,
        variable: str,
        node: p.Predicate,
        inner: p.Comparison,
        name: str,
        attribute: str,
        references: dict[str, Read],
    ) -> p.Predicate:
        kind = kind_of(self.query.schema.attributes[attribute])
        rises = _direction(inner.left, name)
        if kind not in ("int", "float", "decimal", "time"):
            raise self._no_each(variable, node, f"'{attribute}' has neither minimum nor maximum")
        if rises is None or (kind != "int" and not isinstance(inner.left, p.Attribute)):
            raise self._no_each(variable, node, f"{name} stands inside of arithmetic")
        if isinstance(node, p.Not) and kind in ("float", "decimal"):
            raise self._no_each(variable, node, "NOT of a comparison holds for NaN")
        greatest = (inner.op in ("<", "<=")) is (rises is not isinstance(node, p.Not))
        function = "max" if greatest else "min"
        extreme = Aggregate(function, variable, Range.ALL, attribute)
        value = self._known_as(references, str(extreme), extreme)
        told = p.renamed(inner, {one: one if one != name else value.name for one in p.attributes(inner)})
        if isinstance(node, p.Not):
            return p.Not(told)
        count = Aggregate("count", variable, Range.ALL, attribute)
        known = p.Comparison(
            "=",
            self._known_as(references, str(count), count),
            self._known_as(references, f"{variable}.LEN", Length(variable)),
        )
        return told if attribute in self._never_null(variable) else p.And((known, told))

    def _never_null(self, variable: str) -> frozenset[str]:
        at = self.register.numbers[variable]
        return self.register.known(at, Kind.BEGIN) & self.register.known(at, Kind.TAKE)

    def _known_as(self, references: dict[str, Read], name: str, read: Read) -> p.Attribute:
        references[name] = read
        return p.Attribute(name)

    def _no_each(self, variable: str, node: p.Predicate, why: str) -> QueryError:
        spans = [span for span in p.attributes(node).values() if span is not None]
        return _mistake(
            f"this condition on every {variable}[i] needs all events of a match at hand ({why}), which an AFA does not have",
            spans[0] if spans else None,
            "compare one attribute of it by <, <=, >, >= or =",
        )


# ---- What no AFA does


def window_of(query: AnyBound) -> int | None:
    """The window in ticks of the time attribute: an event contributes to those up to and including ``size`` later."""
    time = query.time
    parsed = query.parsed.window
    span = None if parsed is None else parsed.span
    if time is None:
        raise QueryError(
            "a disordered stream is ordered by a time, and none is named",
            span=span,
            hint="pass time='…'",
        )
    kind = query.schema.attributes[time]
    how = measure(kind)
    if how is None or how.real or pa.types.is_decimal(kind):
        raise QueryError(
            f"'{time}' is {kind}: a disordered stream needs times that are integers, dates or timestamps",
            span=span,
        )
    window = query.window
    if window is None:
        return None
    if window.attribute is None:
        raise QueryError(
            "WITHIN n EVENTS counts positions, and each late event moves those behind it",
            span=span,
            hint="say a duration",
        )
    if window.attribute != time:
        raise QueryError(
            f"the window measures '{window.attribute}', and '{time}' orders the stream",
            span=span,
            hint=f"measure '{time}'",
        )
    size = int(window.size)
    return size // 86_400 + 1 if pa.types.is_date32(kind) else size + 1


def _refuse_choices(query: BoundSase) -> None:
    parsed = query.parsed
    chosen = "OUTPUT non_overlap" if parsed.non_overlap else "LIMIT" if parsed.limit is not None else None
    chosen = "KEEP" if parsed.keep is not None else chosen
    if chosen is not None:
        raise QueryError(
            f"{chosen} chooses among matches, which late events add and take back: not on a disordered stream",
            hint=f"leave out {chosen}, or bound the disorder",
        )
    if parsed.steps or parsed.loops or parsed.endings or any(one.again for one in parsed.components):
        raise QueryError(
            "answers ahead are for patterns under one strategy, without groups that repeat and UNTIL",
            hint="leave out groups that repeat, UNTIL and the strategies of single steps, or bound the disorder",
        )
    if parsed.compressed:
        raise QueryError("OUTPUT compressed hands matches over as sets, and a set is not taken back")


def _refuse_variants(nfab: Nfab) -> None:
    """Raise a :class:`QueryError` where a part may be missing and more depends on that than what comes next."""
    lacking = nfab.query.parsed.optional
    if not lacking:
        return
    if nfab.negations:
        own = nfab.negations[0].component
        raise _mistake(f"{own} beside parts that may be missing: not on a disordered stream", own.span)
    if nfab.query.partition_by and not nfab.partitioned:
        raise _mistake(
            "an equivalence test in the whole stream beside parts that may be missing: not on a disordered stream", None
        )
    for pair in nfab.pairs:
        for edge in (pair.begin, pair.take, pair.proceed):
            related = () if edge is None else (*edge.related, *(one for _, one in edge.each))
            for name, span in ((name, span) for one in related for name, span in p.attributes(one).items()):
                variable = nfab.query.parsed.references[name].variable
                if variable in lacking and variable != pair.component.variable:
                    raise _mistake(
                        f"{name} is asked of later events, and a match may lack {variable}: not on a disordered stream",
                        span,
                        "bound the disorder with disorder=",
                    )


def _mistake(message: str, span: Span | None, hint: str | None = None) -> QueryError:
    return QueryError(message, span=span, hint=hint)


def _free(name: str, taken: Iterable[str]) -> str:
    known = set(taken)
    while name in known:
        name += "_"
    return name


def _direction(side: p.Operand, name: str) -> bool | None:
    """Whether a sum or difference rises with an attribute in it; ``None``: that is not known."""
    match side:
        case p.Attribute(own):
            return True if own == name else None
        case p.Ticks(inner):
            return _direction(inner, name)
        case p.Arithmetic("+" | "-" as op, left, right):
            if name in p.attributes(left):
                return None if name in p.attributes(right) else _direction(left, name)
            found = _direction(right, name)
            return found if op == "+" or found is None else not found
        case p.Negative(inner):
            found = _direction(inner, name)
            return None if found is None else not found
    return None
