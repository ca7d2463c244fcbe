"""What arcs of an automaton look like as text."""

from __future__ import annotations

from collections.abc import Iterable

from stretto.query import predicate as p
from stretto.query.afa import Arc, Field, Kind, UserFunction


def shown(arc: Arc, register: Iterable[str]) -> str:
    """Write an arc with its states, functions and the time in which it is valid, for a register with these fields.

    >>> print(shown(Arc("a0", "q0", "q1", None, (p.Constant(3),), since=10), ["n"]))
    q0 -> q1  a0  then n = 3  since 10
    """
    parts = [f"{arc.source} -> {arc.target}", arc.id, f"{_mark(arc)}{_said(arc, register)}".strip()]
    if arc.since is not None:
        parts.append(f"since {arc.since}")
    if arc.until is not None:
        parts.append(f"until {arc.until}")
    return "  ".join(part for part in parts if part)


def _said(arc: Arc, register: Iterable[str]) -> str:
    fence, transfer = fence_text(arc), transfer_text(arc, register)
    return "  ".join(
        part for part in (f"when {fence}" if fence else "", f"then {transfer}" if transfer else "") if part
    )


def _mark(arc: Arc) -> str:
    return {Kind.CONSUME: "", Kind.EPSILON: "ε ", Kind.IGNORE: "ignore "}[arc.kind]


def fence_text(arc: Arc) -> str:
    """Write the fence; nothing where it always holds."""
    return "" if arc.when is None else str(arc.when)


def transfer_text(arc: Arc, register: Iterable[str]) -> str:
    """Write the transfer as assignments of the fields that it changes; nothing where it keeps all."""
    if arc.then is None:
        return ""
    if isinstance(arc.then, UserFunction):
        return str(arc.then)
    changed = [
        f"{p.Attribute(field)} = {_value(value)}"
        for field, value in zip(register, arc.then, strict=True)
        if value != Field(f"r.{field}")
    ]
    return ", ".join(changed)


def _value(value: p.Operand) -> str:
    """A value without brackets around the whole of it."""
    return str(value)[1:-1] if isinstance(value, p.Arithmetic | p.Negative) else str(value)
