"""``stretto.AFA``: augmented finite automata, written down arc by arc or as patterns."""

from __future__ import annotations

import datetime as dt
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.array_types import INT64
from stretto.errors import OptionError, QueryError, StrettoError, hinted, nearest
from stretto.events import Schema
from stretto.languages.afa import Scope, read_fence, read_function, read_transfer, read_window
from stretto.languages.afa.elements import Step, Steps, positions_of
from stretto.languages.afa.scope import clock_of
from stretto.query.afa import Afa, Arc, Emit, Fence, Kind, Transfer, leading, reached, shown
from stretto.query.passes.bind import check_keys
from stretto.query.typing import kind_of

if TYPE_CHECKING:
    from typing_extensions import TypeIs

When = str | Callable[[Any, Any], Any] | None
Then = str | Mapping[str, Any] | Callable[[Any, Any], Any] | None


@check_arguments
class AFA:
    """An augmented finite automaton: a graph of states and arcs, and a register beside each computation.

    An arc has a *fence*, which says whether an event may take it, and a *transfer*, which gives the register after it. Both are
    texts over the event ``e`` and the register ``r``, or Python functions ``(e, r)``. The graph may have any arcs and cycles.
    States come into being by being named. Methods change the automaton and return it, so that calls can be chained.

    Parameters
    ----------
    events
        The attributes of events: a mapping from name to type (Arrow's, or ``int``, ``float``, ``str``, ``bool``,
        ``datetime``), an Arrow schema, or some events. Of a :class:`stretto.Schema` with ``time`` and ``time_unit``, durations beside
        that number are numbers of its units, in texts of arcs: ``e.t - r.begun > 5 minutes``.
    register
        The fields of the register, in the same way, or a ``NamedTuple`` class, whose defaults are the first values.
    initial
        The first value of each field, as a dict or a tuple; zero, false or the empty string where none is given.
    start
        The start state.
    window
        How long an event contributes: a number of ticks of the time attribute, a text such as ``'10 seconds'``, or a
        ``timedelta``. ``None``: for ever.
    partition_by
        Attributes whose values part the stream; each part is matched on its own.

    Raises
    ------
    OptionError
        A type, value or name that does not fit.

    Examples
    --------
    Query Q1 of the paper (figure 3): a large drop, then k = 2 times downticks and as many upticks.

    >>> import stretto
    >>> q1 = stretto.AFA({"change": float}, register={"balance": int, "found": int})
    >>> q1 = q1.arc("q0", "q1", when="e.change < -0.25")
    >>> q1 = q1.arc("q1", "q1", when="e.change < 0", then="balance = r.balance + 1")
    >>> q1 = q1.arc("q1", "q2", when="e.change < 0", then="balance = r.balance + 1")
    >>> q1 = q1.arc("q2", "q2", when="e.change > 0 AND r.balance > 1", then="balance = r.balance - 1")
    >>> q1 = q1.arc("q2", "q1", when="e.change > 0 AND r.balance = 1 AND r.found < 1", then="(0, r.found + 1)")
    >>> q1 = q1.arc("q2", "q3", when="e.change > 0 AND r.balance = 1 AND r.found = 1", then="(0, r.found + 1)")
    >>> print(q1.final("q3"))
    q0 -> q1  a0  when e.change < -0.25
    q1 -> q1  a1  when e.change < 0.0  then balance = r.balance + 1
    q1 -> q2  a2  when e.change < 0.0  then balance = r.balance + 1
    q2 -> q2  a3  when e.change > 0.0 AND r.balance > 1  then balance = r.balance - 1
    q2 -> q1  a4  when e.change > 0.0 AND r.balance = 1 AND r.found < 1  then balance = 0, found = r.found + 1
    q2 -> q3  a5  when e.change > 0.0 AND r.balance = 1 AND r.found = 1  then balance = 0, found = r.found + 1
    q3 is final
    """

    def __init__(
        self,
        events: Any,
        register: Any = None,
        *,
        initial: Any = None,
        start: str = "q0",
        window: int | str | dt.timedelta | None = None,
        partition_by: str | Iterable[str] = (),
    ) -> None:
        known = dict(Schema.of(_times(events)).attributes)
        fields, defaults = _register(register)
        self._empty = Afa(
            events=known,
            register=fields,
            initial=_initial(fields, defaults, initial),
            start=_state(start),
            window=_window(window),
            partition_by=_keys(partition_by, known),
            clock=clock_of(events),
        )
        self._arcs: dict[str, Arc] = {}
        self._finals: dict[str, Emit] = {}

    # -- arcs ---------------------------------------------------------------------------------------------------------

    def arc(self, source: str, target: str, when: When = None, then: Then = None, *, id: str | None = None) -> AFA:
        """Add an arc that consumes an event.

        Parameters
        ----------
        source, target
            The states that it joins.
        when
            Its fence: a condition such as ``"e.price > r.low"``, a Python function ``(e, r)`` that gives a truth value, or
            ``None``: always. In conditions, a comparison with NULL is false.
        then
            Its transfer: a dict ``{field: expression}``, a text with assignments ``"n = r.n + 1, low = e.price"`` or with a
            row ``"(r.n + 1, e.price)"``, or a Python function ``(e, r)`` that gives a tuple. Fields that are not assigned,
            and with ``None`` all of them, keep their value.
        id
            Its name; ``None``: the next free one of a0, a1, …

        Raises
        ------
        QueryError
            A text is wrong, or does not fit the schemas; the error shows where.
        OptionError
            A function cannot be used, or there is an arc of this id.

        Notes
        -----
        Numba compiles Python functions. They get named tuples of those attributes and fields that are numbers, truth values or
        times (as ticks); a transfer gives the fields that are no strings. Where an attribute that a function reads is NULL, a
        fence does not hold, and a transfer is an error. What a function takes from around it is fixed when it is compiled.
        Integers of expressions are checked to stay in 64 bits; those of Python functions are not, so keep them small.

        Examples
        --------
        >>> import stretto
        >>> afa = stretto.AFA({"price": float}, {"low": float})
        >>> print(afa.arc("q0", "q1", when="e.price > 0", then={"low": "e.price"}, id="first").final("q1"))
        q0 -> q1  first  when e.price > 0.0  then low = e.price
        q1 is final
        """
        return self._add(source, target, when, then, id, Kind.CONSUME)

    def epsilon(self, source: str, target: str, when: When = None, then: Then = None, *, id: str | None = None) -> AFA:
        """Add an ε-arc: it consumes no event, and its functions read the register only. Else as :meth:`arc`.

        >>> import stretto
        >>> afa = stretto.AFA({"price": float}, {"n": int}).arc("q0", "q1", then="n = r.n + 1").arc("q1", "q0")
        >>> print(afa.epsilon("q1", "q2", when="r.n > 3").final("q2"))
        q0 -> q1  a0  then n = r.n + 1
        q1 -> q0  a1
        q1 -> q2  a2  ε when r.n > 3
        q2 is final
        """
        return self._add(source, target, when, then, id, Kind.EPSILON)

    def ignore(self, state: str, when: When = None, *, id: str | None = None) -> AFA:
        """Add an ignorable arc: an event for which the fence holds leaves state and register as they are.

        It is no arc of the start state, where every such event would begin a match. An event that an ignorable and another arc
        both take goes both ways.

        >>> import stretto
        >>> afa = stretto.AFA({"kind": str}).arc("q0", "q1", when="e.kind = 'a'").arc("q1", "q2", when="e.kind = 'b'")
        >>> afa = afa.ignore("q1", when="e.kind NOT IN ('a', 'b')").final("q2")
        """
        return self._add(state, state, when, None, id, Kind.IGNORE)

    def final(self, state: str, emit: str = "every") -> AFA:
        """Make a state final.

        Parameters
        ----------
        state
            The state.
        emit
            ``"every"``: output at each event that leads to the state or is ignored in it; ``"on_enter"``: not at ignored ones.

        Raises
        ------
        OptionError
            The state is final already, with another ``emit``.

        Examples
        --------
        >>> import stretto
        >>> stretto.match(stretto.AFA({"x": int}).arc("q0", "q1", when="e.x > 5").final("q1"), [{"t": 1, "x": 7}], time="t").num_rows
        1
        """
        try:
            how = Emit(emit)
        except ValueError:
            raise OptionError(f"emit={emit!r}: expected 'every' or 'on_enter'") from None
        before = self._finals.get(_state(state))
        if before is not None and before is not how:
            raise OptionError(f"the state '{state}' is final already, with emit='{before}'")
        self._finals[state] = how
        return self

    def pattern(
        self,
        pattern: Steps,
        *,
        prefix: str = "q",
        emit: str = "every",
        ignore: When = None,
    ) -> AFA:
        """Add the arcs of a pattern, from the start state on.

        Every element becomes a state, with an arc from each state that may come before it; the last ones are final
        (Glushkov's construction: no ε-arcs). Several patterns in one automaton are found side by side.

        Parameters
        ----------
        pattern
            Of :func:`stretto.element`.
        prefix
            New states are called this and the next free number.
        emit
            As for :meth:`final`.
        ignore
            The fence of an ignorable arc at each new state: events that may come between.

        Raises
        ------
        QueryError, OptionError
            As for :meth:`arc`.
        LimitError
            The pattern has more than 10,000 arcs.

        Examples
        --------
        >>> import stretto
        >>> down = stretto.element("e.change < 0", then="n = r.n + 1")
        >>> up = stretto.element("e.change > 0")
        >>> print(stretto.AFA({"change": float}, {"n": int}).pattern(down.plus() >> up))
        q0 -> q1  a0  when e.change < 0.0  then n = r.n + 1
        q1 -> q1  a1  when e.change < 0.0  then n = r.n + 1
        q1 -> q2  a2  when e.change > 0.0
        q2 is final
        """
        if not isinstance(pattern, Steps):
            raise OptionError(f"a pattern is made of stretto.element(…), not of {type(pattern).__name__}")
        linked = positions_of(pattern)
        before = dict(self._arcs), dict(self._finals)
        try:
            self._link(linked.steps, linked.arcs, linked.last, prefix, emit, ignore)
        except StrettoError:
            self._arcs, self._finals = before
            raise
        return self

    def _link(
        self,
        steps: tuple[Step, ...],
        arcs: Iterable[tuple[int | None, int]],
        last: Iterable[int],
        prefix: str,
        emit: str,
        ignore: When,
    ) -> None:
        taken = {self._empty.start, *self._finals}
        taken |= {state for arc in self._arcs.values() for state in (arc.source, arc.target)}
        states: list[str] = []
        numbers: dict[str, int] = {}
        for step in steps:
            states.append(_free(step.name, prefix, taken, numbers))
            taken.add(states[-1])
        for source, target in arcs:
            step = steps[target]
            self.arc(self._empty.start if source is None else states[source], states[target], step.when, step.then)
        if ignore is not None:
            for state in states:
                self.ignore(state, ignore)
        for at in last:
            self.final(states[at], emit)

    def _add(self, source: str, target: str, when: When, then: Then, id: str | None, kind: Kind) -> AFA:
        if id is None:
            at = len(self._arcs)
            while f"a{at}" in self._arcs:
                at += 1
            id = f"a{at}"
        if id in self._arcs:
            raise OptionError(f"there is an arc '{id}' already: {shown(self._arcs[id], self._empty.register)}")
        self._arcs[id] = make_arc(self._empty, source, target, when=when, then=then, id=id, kind=kind)
        return self

    # -- the automaton ------------------------------------------------------------------------------------------------

    @property
    def frozen(self) -> Afa:
        """Check the automaton and give it as an immutable value.

        One without arcs is an empty graph, whose arcs come while a matcher runs. One that has arcs must be able to give output by
        these: what else would come later is not known, and a mistyped state is the usual reason.

        Raises
        ------
        OptionError
            There are arcs, and no state is final, no arc leaves the start state, no path leads from it to a final state, or a state
            is final or ignores events that no arc leads to.
        """
        return checked(replace(self._empty, arcs=tuple(self._arcs.values()), finals=dict(self._finals)))

    def explain(self) -> str:
        """Show schemas, states and arcs as text.

        >>> import stretto
        >>> print(stretto.AFA({"x": int}).arc("q0", "q1", when="e.x > 5").final("q1").explain().splitlines()[0])
        events     x int64
        """
        from stretto.explaining.afa import explain_afa

        return explain_afa(self.frozen)

    def draw(self) -> Any:
        """Draw the graph as in figures 3 and 14 of the paper, for Graphviz; it shows itself as SVG in a notebook."""
        from stretto.explaining.afa import draw_afa

        return draw_afa(self.frozen)

    def __str__(self) -> str:
        finals = [
            f"{state} is final" + (f" ({how})" if how is not Emit.EVERY else "") for state, how in self._finals.items()
        ]
        arcs = [shown(arc, self._empty.register) for arc in self._arcs.values()]
        return "\n".join([*arcs, *finals])

    def __repr__(self) -> str:
        return f"<stretto.AFA: {len(self._arcs)} arcs>"

    def _repr_html_(self) -> str:
        from stretto.explaining import notebook

        return notebook.html([("automaton", str(self) or "no arcs yet")], self.explain, self.draw)


def checked(found: Afa) -> Afa:
    """An automaton that can give output, or has no arcs.

    Raises
    ------
    OptionError
        As :attr:`AFA.frozen`.
    """
    if not found.arcs:
        return found
    reached = dict.fromkeys(arc.target for arc in found.arcs if arc.kind is not Kind.IGNORE)
    if not found.finals:
        raise OptionError("no state is final, so there is no output: afa.final(state)")
    for state in found.finals:
        if state not in reached:
            raise OptionError(f"the final state '{state}' is never reached{_meant(state, reached)}")
    for arc in found.arcs:
        if arc.kind is Kind.IGNORE and arc.source not in reached:
            where = f"'{arc.source}', which is never reached{_meant(arc.source, reached)}"
            raise OptionError(f"the arc '{arc.id}' ignores events in {where}")
    _check_paths(found)
    return found


def make_arc(
    afa: Afa,
    source: str,
    target: str,
    *,
    when: When = None,
    then: Then = None,
    id: str,
    kind: str = "consume",
    since: int | None = None,
    until: int | None = None,
) -> Arc:
    """An arc for an automaton, from what people write.

    Raises
    ------
    QueryError
        A text is wrong, or does not fit the automaton's schemas.
    OptionError
        A function cannot be used, or an ignorable arc is no self-loop of another state than the start.

    >>> from stretto.query.afa import Afa
    >>> afa = Afa({"price": pa.float64()}, {"n": pa.int64()}, (0,), "q0")
    >>> make_arc(afa, "q0", "q1", when="e.price > 3", then={"n": "r.n + 1"}, id="x").then
    (Arithmetic(op='+', left=Field(name='r.n'), right=Constant(value=1)),)
    """
    if not isinstance(id, str) or not id:
        raise OptionError(f"an arc's id is a text, not {id!r}")
    try:
        role = Kind(kind)
    except ValueError:
        raise OptionError(f"kind={kind!r}: expected 'consume', 'epsilon' or 'ignore'") from None
    for name, tick in (("since", since), ("until", until)):
        if tick is not None and (isinstance(tick, bool) or not isinstance(tick, int)):
            raise OptionError(f"{name}={tick!r}: an arc's lifetime is in ticks of the time attribute, as integers")
    if since is not None and until is not None and until <= since:
        raise OptionError(f"the arc '{id}' would never be valid: since={since}, until={until}")
    if role is Kind.IGNORE:
        _check_ignorable(afa, source, target, then)
    scope = Scope(afa.events, afa.register, afa.clock)
    epsilon = role is Kind.EPSILON
    return Arc(
        id=id,
        source=_state(source),
        target=_state(target),
        when=_fence(when, scope, epsilon),
        then=_transfer(then, scope, epsilon),
        kind=role,
        since=since,
        until=until,
    )


def _check_paths(afa: Afa) -> None:
    """Whether a computation can begin, and get to a final state."""
    there = reached(afa)
    if not afa.finals.keys().isdisjoint(there):
        return
    if not any(arc.source == afa.start for arc in afa.arcs):
        sources = dict.fromkeys(arc.source for arc in afa.arcs)
        first = next((state for state in sources if state not in {arc.target for arc in afa.arcs}), next(iter(sources)))
        raise OptionError(
            f"no arc leaves the start state '{afa.start}', so that nothing ever begins: did you mean AFA(…, start='{first}')?"
        )
    if not there:
        raise OptionError(
            f"only ε-arcs leave the start state '{afa.start}', and no event is ever consumed: add an arc(…)"
        )
    final = next(iter(afa.finals))
    ends = ", ".join(f"'{state}'" for state in afa.states if state in there)
    behind = sorted(leading(afa, [final]) - {final})
    raise OptionError(
        f"no path leads from the start state '{afa.start}' to the final state '{final}': computations reach {ends} only"
        + (f", and it is reached from {', '.join(map(repr, behind))} only" if behind else "")
        + next((f": is '{state}' meant to be '{close}'?" for state in behind if (close := nearest(state, there))), "")
    )


def _check_ignorable(afa: Afa, source: str, target: str, then: Then) -> None:
    if source != target:
        raise OptionError(f"an ignorable arc stays in its state, and this one leads from '{source}' to '{target}'")
    if source == afa.start:
        raise OptionError(
            f"an ignorable arc on the start state '{source}' would begin a match at every event that it ignores; "
            "matches begin at any event anyway"
        )
    if then is not None:
        raise OptionError("an ignorable arc keeps the register: leave out then=")


def _fence(when: When, scope: Scope, epsilon: bool) -> Fence:
    if when is None:
        return None
    if isinstance(when, str):
        return read_fence(when, scope, epsilon=epsilon)
    if callable(when):
        return read_function(when, scope, epsilon=epsilon)
    raise OptionError(f"when= takes a condition as text, a Python function (e, r) or None, not {type(when).__name__}")


def _transfer(then: Then, scope: Scope, epsilon: bool) -> Transfer:
    if then is None:
        return None
    if isinstance(then, str | Mapping):
        if not scope.register:
            raise OptionError("then= sets fields of the register, and there are none: AFA(…, register={'n': int})")
        return read_transfer(then, scope, epsilon=epsilon)
    if callable(then):
        return read_function(then, scope, epsilon=epsilon)
    raise OptionError(
        f"then= takes a dict of expressions, a text, a Python function (e, r) or None, not {type(then).__name__}"
    )


def _state(name: str) -> str:
    if not isinstance(name, str) or not name:
        raise OptionError(f"a state is named by a text, not by {name!r}")
    return name


def _free(name: str | None, prefix: str, taken: set[str], numbers: dict[str, int]) -> str:
    """A name that no state has: this one, or one with the next number."""
    if name is not None and name not in taken:
        return name
    base = prefix if name is None else name
    at = numbers.get(base, 1 if name is None else 2)
    while f"{base}{at}" in taken:
        at += 1
    numbers[base] = at + 1
    return f"{base}{at}"


def _meant(state: str, known: Iterable[str]) -> str:
    close = nearest(state, known)
    return f": did you mean '{close}'?" if close else " by any arc"


# ---- Schemas


def _times(source: Any) -> Any:
    """A schema in which Python's datetime may stand for a type."""
    if isinstance(source, Mapping):
        return {name: pa.timestamp("us") if kind is dt.datetime else kind for name, kind in source.items()}
    return source


def _register(source: Any) -> tuple[dict[str, pa.DataType], dict[str, Any]]:
    """The fields with their types, and first values where the source has them."""
    defaults: dict[str, Any] = {}
    if source is None:
        return {}, defaults
    if isinstance(source, type) and issubclass(source, tuple) and hasattr(source, "_fields"):
        defaults = dict(getattr(source, "_field_defaults", {}))
        try:
            hints = typing.get_type_hints(source)
        except NameError as error:
            raise OptionError(f"the types of {source.__name__} are not known: {error}") from error
        source = {name: hints.get(name) for name in source._fields}
        for name, kind in source.items():
            if kind is None:
                raise OptionError(f"the field '{name}' has no type: use typing.NamedTuple")
    fields = {}
    for name, kind in Schema.of(_times(source)).attributes.items():
        fields[name] = _field_type(name, kind)
    return fields, defaults


def _field_type(name: str, kind: pa.DataType) -> pa.DataType:
    """The type in which a field is kept."""
    family = kind_of(kind)
    if family == "time" and pa.types.is_timestamp(kind):
        return kind
    kept = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    if family not in kept:
        hint = {"time": "use a timestamp", "decimal": "use float"}.get(
            family, "use int, float, bool, str or a timestamp"
        )
        raise OptionError(f"the register's field '{name}' cannot be {kind}: {hint}")
    return kept[family]


_EMPTY: dict[str, Any] = {"int": 0, "float": 0.0, "bool": False, "string": ""}


def _initial(fields: Mapping[str, pa.DataType], defaults: Mapping[str, Any], given: Any) -> tuple[Any, ...]:
    """The first value of each field."""
    if given is None:
        given = {}
    if isinstance(given, tuple | list):
        if len(given) != len(fields):
            raise OptionError(
                f"initial= has {len(given)} values, and the register {len(fields)} fields ({', '.join(fields)})"
            )
        given = dict(zip(fields, given, strict=True))
    if not isinstance(given, Mapping):
        raise OptionError(f"initial= takes a dict or a tuple, not {type(given).__name__}")
    for name in given:
        if name not in fields:
            raise OptionError(hinted(f"initial=: the register has no field '{name}'", name, fields, kind="field"))
    values = {**defaults, **given}
    return tuple(_first(name, kind, values.get(name)) for name, kind in fields.items())


def _first(name: str, kind: pa.DataType, value: Any) -> Any:
    """A field's first value as a Python object of its type."""
    family = kind_of(kind)
    if value is None:
        return _EMPTY[family] if family in _EMPTY else pa.scalar(0, pa.int64()).cast(kind).as_py()
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool) and INT64[0] <= value <= INT64[-1],
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "string": isinstance(value, str),
        "time": isinstance(value, dt.datetime) and (value.tzinfo is not None) == bool(getattr(kind, "tz", None)),
    }
    if not fits[family]:
        raise OptionError(f"the field '{name}' ({kind}) cannot begin as {value!r}")
    try:
        found = float(value) if family == "float" else pa.scalar(value, kind).as_py()
    except (OverflowError, pa.ArrowInvalid) as error:
        raise OptionError(f"the field '{name}' ({kind}) cannot begin as a value so great") from error
    if family == "time" and found != value:
        raise OptionError(f"the field '{name}' ({kind}) cannot begin as {value!r}: its unit is {kind.unit}")
    return found


def _window(window: int | str | dt.timedelta | None) -> int | dt.timedelta | None:
    if window is None:
        return None
    found: Any = read_window(window) if isinstance(window, str) else window
    if isinstance(found, bool) or not isinstance(found, int | dt.timedelta):
        raise OptionError(
            f"window={window!r}: expected ticks as an integer, a text such as '10 seconds', or a timedelta"
        )
    if (found.total_seconds() if isinstance(found, dt.timedelta) else found) <= 0:
        raise OptionError(f"window={window!r}: nothing lives that long; a window is positive")
    return found


def _keys(given: str | Iterable[str], known: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """The attributes that part the stream."""
    keys = (given,) if isinstance(given, str) else tuple(given)
    for name in keys:
        if name not in known:
            raise OptionError(hinted(f"partition_by: there is no attribute '{name}'", name, known, kind="attribute"))
        if keys.count(name) > 1:
            raise OptionError(f"partition_by names '{name}' twice")
    try:
        check_keys(keys, (), Schema(known))
    except QueryError as error:
        raise OptionError(f"partition_by: {error}") from None
    return keys


def is_afa(query: object) -> TypeIs[AFA | Afa]:
    """Tell whether what stands for a query is an automaton, as it is built or complete."""
    return isinstance(query, AFA | Afa)
