"""The columns of derived relations: their types follow from the sources through the rules, in recursion to a fixed point.

A number without a point is an integer, or, where other rules give the column floats, a float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa

from stretto.errors import QueryError
from stretto.languages.datalog.ordering import Assign, Exclude, Filter, Ordered, Scan, Step
from stretto.languages.datalog.strata import Names
from stretto.languages.datalog.tree import ANY, Aggregate, Atom, Head, Program, variables
from stretto.query import predicate as p
from stretto.query.scalar_functions import NUMBERS
from stretto.query.typing import kind_of, type_of_operand, typed, typed_operand

Row = dict[str, pa.DataType]

#: What each aggregate takes.
_TAKES = {
    "sum": ("int", "float"),
    "avg": ("int", "float"),
    "min": ("int", "float", "time", "bool"),
    "max": ("int", "float", "time", "bool"),
}


@dataclass
class _Column:
    """What is known about a column: the type of the values in it (before they are aggregated), and which rule said so."""

    kind: pa.DataType | None = None
    rule: Ordered | None = None


def inferred(
    orders: Mapping[str, Sequence[Ordered]],
    groups: Sequence[Names],
    sources: Mapping[str, Mapping[str, pa.DataType]],
    program: Program,
) -> dict[str, Row]:
    """Find the columns of each derived relation.

    Raises
    ------
    QueryError
        Rules disagree about a column, nothing gives it values, or something in a rule does not fit.
    """
    rows: dict[str, Row] = {}
    known: dict[str, list[pa.DataType | None]] = {name: list(row.values()) for name, row in sources.items()}
    for group in groups:
        columns = {name: [_Column() for _ in orders[name][0].rule.head.arguments] for name in group.names}
        known |= {name: [None] * len(columns[name]) for name in group.names}
        for literals in (False, True):
            # Integers without a point wait until all else is known: they fit floats, too.
            while _round(group, orders, columns, known, literals, program):
                pass
        for name in group.names:
            head = orders[name][0].rule.head
            for at, column in enumerate(columns[name]):
                if column.kind is None:
                    what = f"no rule gives column {at + 1} of '{name}' a value"
                    raise QueryError(what, span=head.span, hint=f"add a rule that does not read '{name}'")
            kinds = [_result(one, column.kind) for one, column in zip(head.arguments, columns[name], strict=True)]
            rows[name] = dict(zip(_names([rule.rule.head for rule in orders[name]]), kinds, strict=True))
    return rows


def _round(
    group: Names,
    orders: Mapping[str, Sequence[Ordered]],
    columns: Mapping[str, list[_Column]],
    known: dict[str, list[pa.DataType | None]],
    literals: bool,
    program: Program,
) -> bool:
    """Look at every rule of a group once; whether anything new was learnt."""
    news = False
    for name in group.names:
        for rule in orders[name]:
            heads = rule.rule.head.arguments
            known[name] = [_result(one, column.kind) for one, column in zip(heads, columns[name], strict=True)]
            types, constants = _types(rule, known)
            for at, argument in enumerate(heads):
                column = columns[name][at]
                kind, literal = _head_type(argument, types, constants)
                if kind is None or (literal and not literals):
                    continue
                if column.kind is None:
                    column.kind, column.rule, news = kind, rule, True
                elif column.kind != kind and not (literal and kind_of(column.kind) == "float"):
                    raise _conflict(at, rule, kind, column, program)
            known[name] = [_result(one, column.kind) for one, column in zip(heads, columns[name], strict=True)]
    return news


def _conflict(at: int, rule: Ordered, kind: pa.DataType, column: _Column, program: Program) -> QueryError:
    head = rule.rule.head
    argument = head.arguments[at]
    assert column.rule is not None
    first = column.rule.rule
    hint = f"line {program.line(first)}: {first}"
    if {kind_of(kind), kind_of(column.kind)} == {"int", "float"}:
        hint += " An integer times 1.0 is a float"
    return QueryError(
        f"column {at + 1} of '{head.name}' is {kind} here and {column.kind} in another rule",
        span=argument.span or head.span,
        hint=hint,
    )


# ---- A rule


def _types(
    rule: Ordered, known: Mapping[str, Sequence[pa.DataType | None]]
) -> tuple[dict[str, pa.DataType | None], dict[str, p.Constant]]:
    """The types of a rule's variables as far as they are known, and those that stand for a constant."""
    types: dict[str, pa.DataType | None] = {}
    constants: dict[str, p.Constant] = {}
    for step in rule.steps:
        if isinstance(step, Scan):
            for argument, kind in zip(step.atom.arguments, known[step.atom.name], strict=True):
                if isinstance(argument, p.Attribute) and argument.name != ANY and types.get(argument.name) is None:
                    types[argument.name] = kind
        elif isinstance(step, Assign):
            if isinstance(step.value, p.Constant):
                constants[step.variable] = step.value
            if all(types.get(name) is not None for name in variables(step.value)):
                types[step.variable] = _operand(step.value, types)[1]
            else:
                types[step.variable] = None
    return types, constants


def _operand(value: p.Operand, types: Mapping[str, pa.DataType | None]) -> tuple[p.Operand, pa.DataType]:
    """A value that fits the types of its variables, and its own type."""
    found = typed_operand(value, types)
    if isinstance(found, p.Constant):
        found = replace(found, value=_plain(found))
    kind = type_of_operand(found, types)
    plain = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string()}
    return found, plain.get(kind_of(kind), kind)


def _plain(constant: p.Constant) -> p.Value:
    """A literal as a value of 64 bits."""
    value = constant.value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        hint = "integers reach from −2^63 to 2^63 − 1"
        raise QueryError(f"the number {value} does not fit into 64 bits", span=constant.span, hint=hint)
    if isinstance(value, Decimal):
        value = float(value)
        if math.isinf(value):
            raise QueryError("the number is too great", span=constant.span, hint="no double is as great")
    return value


def _head_type(
    argument: p.Operand | Aggregate,
    types: Mapping[str, pa.DataType | None],
    constants: Mapping[str, p.Constant],
) -> tuple[pa.DataType | None, bool]:
    """The type of what a rule puts into a column, and whether it is an integer that could be a float as well."""
    value = argument.value if isinstance(argument, Aggregate) else argument
    if value is None or (isinstance(argument, Aggregate) and argument.function == "count"):
        return pa.int64(), False
    if any(types.get(name) is None for name in variables(value)):
        return None, False
    _, kind = _operand(value, types)
    if isinstance(argument, Aggregate) and kind_of(kind) not in _TAKES[argument.function]:
        message = f"{argument.function} is not defined for {kind}"
        raise QueryError(message, span=argument.span, hint=f"it takes {_listed(_TAKES[argument.function])}")
    literal = constants.get(value.name) if isinstance(value, p.Attribute) else value
    return kind, isinstance(literal, p.Constant) and kind_of(kind) == "int"


def _listed(kinds: Sequence[str]) -> str:
    words = {"int": "integers", "float": "floats", "time": "times", "bool": "truth values"}
    return " and ".join([", ".join(words[kind] for kind in kinds[:-1]), words[kinds[-1]]])


def _result(argument: p.Operand | Aggregate, kind: pa.DataType | None) -> pa.DataType | None:
    if isinstance(argument, Aggregate) and kind is not None:
        return {"count": pa.int64(), "avg": pa.float64()}.get(argument.function, kind)
    return kind


def _names(heads: Sequence[Head]) -> list[str]:
    """What the columns are called: each after the variable of the first rule that has one there."""
    found: list[str] = []
    for at, arguments in enumerate(zip(*(head.arguments for head in heads), strict=True)):
        names = (_name(argument) for argument in arguments)
        name = next((one for one in names if one.isidentifier() and one not in _TIMES), f"column_{at + 1}")
        while name in found:
            name = f"{name}_{at + 1}"
        found.append(name)
    return found


_TIMES = ("vs", "ve", "ve_new")


def _name(argument: p.Operand | Aggregate) -> str:
    if not isinstance(argument, Aggregate):
        return argument.name.strip("_").lower() if isinstance(argument, p.Attribute) else ""
    own = "" if argument.value is None else _name(argument.value)
    # The least and the greatest of C are values of C; its sum is not.
    return own if argument.function in ("min", "max") else "_".join(part for part in (argument.function, own) if part)


# ---- Settling: every value in the type that it is used with


def settled(rule: Ordered, rows: Mapping[str, Mapping[str, pa.DataType]]) -> Ordered:
    """Check all values of a rule and put them in their types, once the columns of all relations are known.

    Raises
    ------
    QueryError
        Values of different kinds meet.
    """
    known = {atom.name: list(rows[atom.name].values()) for atom in rule.scans}
    types, _ = _types(rule, known)
    seen: dict[str, pa.DataType] = {}
    steps: list[Step] = []
    for step in rule.steps:
        match step:
            case Scan(atom):
                steps.append(Scan(_settled_atom(atom, rows[atom.name], seen)))
            case Exclude(atom):
                _check_excluded(atom, rows[atom.name], types)
                steps.append(Exclude(_settled_atom(atom, rows[atom.name], seen)))
            case Filter(comparison):
                steps.append(Filter(_settled_comparison(comparison, types)))
            case Assign(variable, value):
                found, kind = _operand(value, types)
                seen[variable] = kind
                steps.append(Assign(variable, found))
    assigned = {step.variable: step.value for step in steps if isinstance(step, Assign)}
    head = rule.rule.head
    columns = rows[head.name].values()
    arguments = tuple(
        _settled_head(one, kind, types, assigned) for one, kind in zip(head.arguments, columns, strict=True)
    )
    return Ordered(replace(rule.rule, head=replace(head, arguments=arguments)), tuple(steps))


def _settled_atom(atom: Atom, row: Mapping[str, pa.DataType], seen: dict[str, pa.DataType]) -> Atom:
    """An atom with constants in the types of its columns; ``seen`` are the types of the variables so far."""
    arguments: list[p.Operand] = []
    for argument, (column, kind) in zip(atom.arguments, row.items(), strict=True):
        if isinstance(argument, p.Constant):
            same = typed(p.Comparison("=", p.Attribute(column), argument, argument.span), {column: kind})
            assert isinstance(same, p.Comparison)
            arguments.append(same.right)
            continue
        assert isinstance(argument, p.Attribute)
        arguments.append(argument)
        if argument.name == ANY:
            continue
        before = seen.setdefault(argument.name, kind)
        if before != kind and kind_of(before) != kind_of(kind) and {kind_of(before), kind_of(kind)} - set(NUMBERS):
            raise _mismatch(argument, atom, column, before, kind)
    return replace(atom, arguments=tuple(arguments))


def _mismatch(argument: p.Attribute, atom: Atom, column: str, before: pa.DataType, kind: pa.DataType) -> QueryError:
    message = f"'{argument.name}' is {before}, and column {column} of '{atom.name}' is {kind}"
    return QueryError(message, span=argument.span, hint="one variable stands for equal values: use two")


def _check_excluded(atom: Atom, row: Mapping[str, pa.DataType], types: Mapping[str, pa.DataType | None]) -> None:
    """What 'not' looks up has exactly the type of the column."""
    for argument, (column, kind) in zip(atom.arguments, row.items(), strict=True):
        if not isinstance(argument, p.Attribute) or argument.name == ANY or types[argument.name] == kind:
            continue
        error = _mismatch(argument, atom, column, types[argument.name], kind)
        if kind_of(kind) == "float" and kind_of(types[argument.name]) == "int":
            error = QueryError(
                error.message, span=error.span, hint=f"look up a float: F = {argument.name} * 1.0, not …(F)"
            )
        raise error


def _settled_comparison(comparison: p.Comparison, types: Mapping[str, pa.DataType | None]) -> p.Comparison:
    found = typed(comparison, types)
    assert isinstance(found, p.Comparison)
    sides = [
        replace(one, value=_plain(one)) if isinstance(one, p.Constant) else one for one in (found.left, found.right)
    ]
    return replace(found, left=sides[0], right=sides[1])


def _settled_head(
    argument: p.Operand | Aggregate,
    kind: pa.DataType,
    types: Mapping[str, pa.DataType | None],
    assigned: Mapping[str, p.Operand],
) -> p.Operand | Aggregate:
    if isinstance(argument, Aggregate):
        if argument.value is None:
            return argument
        return replace(argument, value=_fitting(argument.value, kind, types, assigned))
    return _fitting(argument, kind, types, assigned)


def _fitting(
    value: p.Operand,
    kind: pa.DataType,
    types: Mapping[str, pa.DataType | None],
    assigned: Mapping[str, p.Operand],
) -> p.Operand:
    """A value for a column of a type: an integer that is written out becomes a float there."""
    found, _ = _operand(value, types)
    source = assigned.get(found.name) if isinstance(found, p.Attribute) else found
    if isinstance(source, p.Constant) and kind_of(kind) == "float":
        assert isinstance(source.value, int | float)
        return p.Constant(float(source.value), getattr(value, "span", None))
    return found
