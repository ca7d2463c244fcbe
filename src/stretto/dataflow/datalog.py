"""Datalog text as streams (FFP paper, section 1: queries of Declarative Networking)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from stretto.arguments import check_arguments
from stretto.dataflow import plan
from stretto.dataflow.plan import Stream
from stretto.dataflow.stream import fixpoints, stream
from stretto.errors import OptionError
from stretto.languages.datalog import (
    Aggregate,
    Assign,
    Atom,
    Exclude,
    Filter,
    Head,
    Ordered,
    Relation,
    Scan,
    checked,
    read_program,
)
from stretto.languages.datalog.ordering import Step
from stretto.languages.datalog.tree import ANY, variables
from stretto.query import predicate as p
from stretto.query.typing import type_of_operand

_NAME = re.compile(r"(?!(?:not|true|false)\Z)[^\W\d_A-ZÀ-ÖØ-Þ]\w*")


@check_arguments
def datalog(text: str, sources: Mapping[str, Any], *, bound: int | None = None) -> dict[str, Stream]:
    """The relations that a Datalog program derives, as streams.

    Parameters
    ----------
    text
        Facts and rules (see docs/datalog.md).
    sources
        The relations that come from outside: names with their columns, as :func:`~stretto.dataflow.stream` takes them, or with
        streams. A program names columns by their position.
    bound
        How often anything may go around a recursion. Needed where a rule computes new values from its own results, and nothing in
        the program keeps them from going on for ever.

    Returns
    -------
    dict
        For each relation of a head its stream. Every relation is a set. Each column has the name of the variable that the
        first rule with one has there, in small letters; ``sum<C>`` is called ``sum_c``.

    Raises
    ------
    QueryError
        The program is wrong, with the place and, where there is one, a suggestion.
    OptionError
        A source has a name that a program cannot write.

    Examples
    --------
    >>> found = datalog(
    ...     '''
    ...     reachable(X, Y) :- link(X, Y).
    ...     reachable(X, Z) :- link(X, Y), reachable(Y, Z).
    ...     reached(X, count<Y>) :- reachable(X, Y), X != Y.
    ...     ''',
    ...     {"link": {"src": str, "dst": str}},
    ... )
    >>> found["reachable"], found["reached"]
    (Stream(x: string, y: string), Stream(x: string, count_y: int64))
    """
    program = read_program(text)
    relations = {name: _source(name, source) for name, source in sources.items()}
    found = checked(program, {name: relation.schema for name, relation in relations.items()}, _bound(bound))
    for group in found.groups:
        names = [relation.name for relation in group.relations]
        if group.recursive:
            loop = fixpoints(
                lambda *made, group=group, names=names: [
                    _derived(relation, {**relations, **dict(zip(names, made, strict=True))})
                    for relation in group.relations
                ],
                {relation.name: relation.row for relation in group.relations},
                bound=bound,
            )
            node = loop[0].node
            assert isinstance(node, plan.Fixpoint)
            node.loop.ends = group.ending
            relations.update(zip(names, loop, strict=True))
        else:
            relations[names[0]] = _derived(group.relations[0], relations)
    return {rule.head.name: relations[rule.head.name] for rule in program.rules}


def _source(name: str, given: Any) -> Stream:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise OptionError(f"a program cannot name the source {name!r}: names begin with a small letter, as 'link' does")
    return given if isinstance(given, Stream) else stream(name, given)


def _bound(bound: int | None) -> int | None:
    if bound is not None and (not isinstance(bound, int) or isinstance(bound, bool) or bound < 1):
        raise OptionError(f"bound must be a positive integer, not {bound!r}")
    return bound


# ---- Relations


def _derived(relation: Relation, relations: Mapping[str, Stream]) -> Stream:
    """All that the rules of a relation derive: a set, or the aggregates of its groups."""
    head = relation.rules[0].rule.head
    if head.aggregates:
        return _aggregated(relation, relations)
    facts = [rule for rule in relation.rules if not rule.rule.body]
    parts = [_body(rule, relations).head(rule.rule.head, relation.row) for rule in relation.rules if rule.rule.body]
    if facts:
        rows = dict.fromkeys(tuple(_constant(argument) for argument in rule.rule.head.arguments) for rule in facts)
        constant = Stream(plan.Constant(relation.row, tuple(rows)))
        if not parts:
            return constant
        parts.append(constant)
    return _union(parts).distinct()


def _constant(value: p.Operand | Aggregate) -> p.Value:
    assert isinstance(value, p.Constant)
    return value.value


def _union(parts: Sequence[Stream]) -> Stream:
    return parts[0].union(*parts[1:]) if len(parts) > 1 else parts[0]


def _aggregated(relation: Relation, relations: Mapping[str, Stream]) -> Stream:
    """The aggregates over the solutions of the bodies: each solution of a rule counts once."""
    head = relation.rules[0].rule.head
    columns = list(relation.row)
    aggregates = dict(head.aggregates)
    inputs: dict[int, str] = {}
    for at, aggregate in aggregates.items():
        inputs[at] = _input_name(aggregate, columns[at], [*columns, *inputs.values()])
    by = tuple(name for at, name in enumerate(columns) if at not in aggregates)
    taken = [at for at in range(len(columns)) if at not in aggregates or aggregates[at].value is not None]
    parts = []
    for rule in relation.rules:
        body = _body(rule, relations)
        values = {inputs.get(at, columns[at]): _value(rule.rule.head, at) for at in taken}
        # Counting nothing but rows, an aggregate needs a column all the same.
        parts.append(body.project(values or {columns[0]: p.Constant(1)}))
    items = tuple(
        plan.Item(columns[at], aggregate.function, None if aggregate.function == "count" else inputs[at])
        for at, aggregate in aggregates.items()
    )
    row = {name: relation.row[name] for name in by} | {item.name: relation.row[item.name] for item in items}
    made = Stream(plan.Aggregate(row, _union(parts).node, by, items))
    return made if list(row) == columns else made.project(*columns)


def _input_name(aggregate: Aggregate, column: str, columns: Sequence[str]) -> str:
    """What the values are called that an aggregate goes over: after their variable, where that says more."""
    value = aggregate.value
    name = value.name.strip("_").lower() if isinstance(value, p.Attribute) else ""
    return name if name.isidentifier() and name not in columns else column


def _value(head: Head, at: int) -> p.Operand:
    argument = head.arguments[at]
    value = argument.value if isinstance(argument, Aggregate) else argument
    assert value is not None
    return value


# ---- Bodies


def _body(rule: Ordered, relations: Mapping[str, Stream]) -> _Body:
    """The solutions of a rule's body."""
    counts = any(one.function not in ("min", "max") for _, one in rule.rule.head.aggregates)
    wanted = _wanted(rule, counts)
    body = _Body()
    for at, step in enumerate(rule.steps):
        body.take(step, relations, wanted[at])
    if body.stream is None:
        body.stream = _unit()
    if counts:
        # Variables count, not the rows that happen to agree on them.
        body.keep(variable for atom in rule.scans for variable in variables(*atom.arguments))
        body.stream = body.stream.distinct()
    return body


def _wanted(rule: Ordered, all_of_them: bool) -> list[set[str]]:
    """For each step the variables that are needed after it."""
    needed = set(variables(*rule.rule.values))
    if all_of_them:
        needed |= {name for atom in rule.scans for name in variables(*atom.arguments)}
    found = []
    for step in reversed(rule.steps):
        found.append(set(needed))
        needed |= _read(step)
    return found[::-1]


def _read(step: Step) -> set[str]:
    match step:
        case Scan(atom) | Exclude(atom):
            return set(variables(*atom.arguments))
        case Filter(comparison):
            return set(variables(comparison))
        case Assign(_, value):
            return set(variables(value))


def _unit() -> Stream:
    """One row, always: the solution of a body that joins nothing."""
    return Stream(plan.Constant({_ONE: pa.bool_()}, ((True,),)))


_ONE = "one"


class _Body:
    """A body while its steps are taken.

    Attributes
    ----------
    stream
        The solutions so far; ``None``: nothing is joined yet.
    values
        What each variable is, computed from the columns of the stream.
    """

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.values: dict[str, p.Operand] = {}

    def take(self, step: Step, relations: Mapping[str, Stream], wanted: set[str]) -> None:
        """One step; ``wanted`` are the variables that are needed after it."""
        match step:
            case Scan(atom):
                self._scan(atom, relations[atom.name], wanted)
            case Exclude(atom):
                self._exclude(atom, relations[atom.name], wanted)
            case Filter(comparison):
                self.stream = _where(self._started(), [self._over_columns(comparison)])
            case Assign(variable, value):
                self.values[variable] = p.substituted(value, self.values)

    def head(self, head: Head, row: Mapping[str, pa.DataType]) -> Stream:
        """What the rule derives."""
        values = {}
        for name, argument in zip(row, head.arguments, strict=True):
            assert not isinstance(argument, Aggregate)
            values[name] = argument
        return self.project(values)

    def project(self, values: Mapping[str, p.Operand]) -> Stream:
        """Columns that are computed from the variables."""
        return _project(self._started(), {name: p.substituted(value, self.values) for name, value in values.items()})

    def keep(self, names: Iterable[str]) -> None:
        """Leave the columns that these variables, of relations, are."""
        self._trim(set(names))

    # ---- Steps

    def _started(self) -> Stream:
        if self.stream is None:
            self.stream = _unit()
        return self.stream

    def _over_columns(self, comparison: p.Comparison) -> p.Comparison:
        left, right = (p.substituted(side, self.values) for side in (comparison.left, comparison.right))
        return p.Comparison(comparison.op, left, right, comparison.span)

    def _scan(self, atom: Atom, relation: Stream, wanted: set[str]) -> None:
        right, columns = _selected(self._with_constants(atom, relation), relation)
        if self.stream is None:
            self.stream = right
            self.values |= {name: p.Attribute(column) for name, column in columns.items()}
            return
        kept = {name: column for name, column in columns.items() if name in wanted or name in self.values}
        right = _only(right, list(kept.values()))
        shared = [name for name in kept if name in self.values]
        self._trim(wanted | set(shared))
        self._compute(shared)
        left = self._started()
        keys = [(name, self._column(name), kept[name]) for name in shared]
        same = [(mine, its) for _, mine, its in keys if left.schema[mine] == right.schema[its]]
        taken = [column for column in kept.values() if column not in [its for _, its in same]]
        names = _fresh(taken, left.schema)
        row = left.schema | {names[column]: right.schema[column] for column in taken}
        self.stream = Stream(plan.Join(row, left.node, right.node, tuple(same), tuple(names.items())))
        differ = [(mine, its) for _, mine, its in keys if left.schema[mine] != right.schema[its]]
        if differ:
            equal = [p.Comparison("=", p.Attribute(mine), p.Attribute(names[its])) for mine, its in differ]
            self.stream = _where(self.stream, equal)
        for name, column in kept.items():
            if name not in self.values:
                self.values[name] = p.Attribute(names[column])

    def _exclude(self, atom: Atom, relation: Stream, wanted: set[str]) -> None:
        right, columns = _selected(self._with_constants(atom, relation), relation)
        right = _only(right, list(columns.values()))
        self._trim(wanted | set(columns))
        left = self._started()
        if columns:
            self._compute(columns)
            left = self._started()
            on = tuple((self._column(name), column) for name, column in columns.items())
        else:
            # Whether there is any row at all: both sides get a column in which they agree.
            name = _fresh([_ONE], left.schema)[_ONE]
            kept = {column: p.Attribute(column) for column in left.schema}
            left = _project(left, {**kept, name: p.Constant(True)})
            on = ((name, _ONE),)
        self.stream = Stream(plan.Difference(left.schema, left.node, right.node, on))

    def _with_constants(self, atom: Atom, relation: Stream) -> Atom:
        """The atom with constants for variables that stand for one."""
        arguments: list[p.Operand] = []
        for argument, kind in zip(atom.arguments, relation.schema.values(), strict=True):
            value = self.values.get(argument.name) if isinstance(argument, p.Attribute) else None
            if isinstance(value, p.Constant):
                whole = value.value if isinstance(value.value, int) else None
                arguments.append(p.Constant(float(whole)) if whole is not None and kind == pa.float64() else value)
            else:
                arguments.append(argument)
        return Atom(atom.name, tuple(arguments))

    def _column(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, p.Attribute)
        return value.name

    def _compute(self, names: Iterable[str]) -> None:
        """Make columns of variables that are computed, or that share one."""
        stream = self._started()
        kept: dict[str, p.Operand] = {column: p.Attribute(column) for column in stream.schema}
        used: set[str] = set()
        for name in names:
            value = self.values[name]
            if isinstance(value, p.Attribute) and value.name not in used:
                used.add(value.name)
                continue
            column = _fresh([name.strip("_").lower() or _ONE], kept)
            made = next(iter(column.values()))
            kept[made] = value
            used.add(made)
            self.values[name] = p.Attribute(made)
        if len(kept) > len(stream.schema):
            self.stream = _project(stream, kept)

    def _trim(self, wanted: set[str]) -> None:
        """Leave the columns that variables are computed from which are still needed."""
        stream = self._started()
        used = {column for name in wanted if name in self.values for column in p.attributes(self.values[name])}
        self.stream = _only(stream, [column for column in stream.schema if column in used])


def _selected(atom: Atom, relation: Stream) -> tuple[Stream, dict[str, str]]:
    """The rows of a relation that agree with an atom's constants and repeated variables, and the column of each variable."""
    columns: dict[str, str] = {}
    conditions: list[p.Predicate] = []
    for argument, column in zip(atom.arguments, relation.schema, strict=True):
        if isinstance(argument, p.Constant):
            conditions.append(p.Comparison("=", p.Attribute(column), argument))
        elif isinstance(argument, p.Attribute) and argument.name != ANY:
            first = columns.setdefault(argument.name, column)
            if first != column:
                conditions.append(p.Comparison("=", p.Attribute(first), p.Attribute(column)))
    return _where(relation, conditions), columns


# ---- Operators


def _where(stream: Stream, conditions: Sequence[p.Predicate]) -> Stream:
    if not conditions:
        return stream
    condition = conditions[0] if len(conditions) == 1 else p.And(tuple(conditions))
    return Stream(plan.Where(stream.schema, stream.node, condition))


def _only(stream: Stream, columns: Sequence[str]) -> Stream:
    """The columns that are needed; if none is, one row that says that there is any."""
    if len(columns) == len(stream.schema):
        return stream
    if not columns:
        return _project(stream, {_ONE: p.Constant(True)}).distinct()
    return _project(stream, {column: p.Attribute(column) for column in columns})


def _project(stream: Stream, values: Mapping[str, p.Operand]) -> Stream:
    if list(stream.schema) == list(values) and all(value == p.Attribute(name) for name, value in values.items()):
        return stream
    row = {name: type_of_operand(value, stream.schema) for name, value in values.items()}
    node = stream.node
    if isinstance(node, plan.Project) and all(isinstance(value, p.Attribute) for _, value in node.values):
        # It only leaves out columns, or names them: that can be done at once.
        values = {name: p.substituted(value, dict(node.values)) for name, value in values.items()}
        node = node.input
    return Stream(plan.Project(row, node, tuple(values.items())))


def _fresh(columns: Iterable[str], taken: Mapping[str, Any]) -> dict[str, str]:
    """Names for columns that are joined to others."""
    found: dict[str, str] = {}
    used = set(taken)
    for column in columns:
        name, number = column, 2
        while name in used:
            name, number = f"{column}_{number}", number + 1
        found[column] = name
        used.add(name)
    return found
