"""RETURN TOTAL and its like: values over the events of a variable become values of one event, as CEQL has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stretto.languages.expressions.tokens import Mistake, Name
from stretto.languages.expressions.totals import Called, Item, Variables, asked
from stretto.languages.sase.draft import Clauses
from stretto.query import predicate as p
from stretto.query.sase import Aggregate, Component, Element, Index, Range, Referred
from stretto.query.totals import Asked, Extent, Function


def asked_of_all(clauses: Clauses, known: Mapping[str, Component], keys: Sequence[str]) -> Asked | None:
    """Say what a query asks of all its matches together; ``None``: it lists them.

    Parameters
    ----------
    clauses
        The clauses as they are written.
    known
        The components of the pattern, by variable.
    keys
        The attributes of the equivalence tests.
    """
    variables = Variables(
        [name for name, one in known.items() if not one.negated],
        [name for name, one in known.items() if one.many],
        [name for name, one in known.items() if one.negated],
        "an equivalence test [{}] in WHERE",
    )
    items = clauses.totals
    if items is not None:
        items = tuple(_resolved(item, known, variables) for item in items)
    order = clauses.order
    if order is not None:
        terms = tuple((_called(called, known, variables), factor) for called, factor in order.terms)
        clauses = replace(clauses, order=replace(order, terms=terms))
    found = asked(items, clauses, variables, None, {name: name for name in keys})
    if found is not None and found.scope.extent is Extent.WINDOW:
        for one in known.values():
            if one.negated and one in (next(iter(known.values())), list(known.values())[-1]):
                raise Mistake(
                    f"{one} lasts as long as WITHIN says, which with EVERY is the size of windows",
                    one.span,
                    "write EVERY EVENT, or leave out EVERY",
                )
    return found


def _resolved(item: Item, known: Mapping[str, Component], variables: Variables) -> Item:
    return replace(item, called=_called(item.called, known, variables))


def _called(called: Called, known: Mapping[str, Component], variables: Variables) -> Called:
    """A function over the events of one variable, which its references name."""
    value = called.value
    if value is None:
        return called
    uses = [node for node in p.walk(value) if isinstance(node, Referred)]
    if calls := p.calls(value):
        raise Mistake("registered functions are for conditions, not for RETURN", calls[0].span)
    for use in uses:
        _check(use, called, known, variables)
    if not uses:
        raise Mistake("a total is of values of events", called.span, f"{called.function.lower()}(b[].price)")
    names = {_variable(use): use for use in uses}
    if len(names) > 1:
        first, second = list(names)[:2]
        raise Mistake(
            f"a total is of the events of one variable, and this is of '{first}' and '{second}'",
            called.span,
            "make two items of it",
        )
    (variable,) = names
    span = uses[0].variable_span or uses[0].span
    assert span is not None
    return replace(called, variable=Name(variable, span), value=_of_event(value))


def _variable(use: Referred) -> str:
    return use.name if use.reference is None else use.reference.variable


def _check(use: Referred, called: Called, known: Mapping[str, Component], variables: Variables) -> None:
    """References are to all events of a variable."""
    name, reference = _variable(use), use.reference
    if reference is None and name not in known:
        raise Mistake(
            f"'{name}' of which event?", use.span, f"name the variable: {called.function.lower()}(b[].{name})"
        )
    span = use.variable_span or use.span
    assert span is not None
    variables.check(Name(name, span))
    many = known[name].many
    shown = f"{name}[]" if many else name
    whole = called.value is use and called.function is Function.COUNT
    match reference:
        case None | Aggregate("", _, Range.ALL, None):
            if whole and many is isinstance(reference, Aggregate):
                return
            hint = f"count({shown}) counts events, {called.function.lower()}({shown}.x) is of their values"
            raise Mistake(f"'{use.name}' is no value", use.span, hint)
        case Aggregate("", _, Range.ALL, _) if many:
            return
        case Element(_, Index.ONLY, _) if not many:
            return
    attribute = getattr(reference, "attribute", None) or "x"
    raise Mistake(
        f"a total is of all events of '{name}', in every match",
        use.span,
        f"write {called.function.lower()}({shown}.{attribute})",
    )


def _of_event(value: p.Expression) -> p.Operand:
    """The same over the attributes of one event."""
    if isinstance(value, Referred):
        attribute = None if value.reference is None else value.reference.attribute
        return p.Constant(1, value.span) if attribute is None else p.Attribute(attribute, value.span)
    found = p.rebuilt(value, _of_event)
    assert isinstance(found, p.Operand)
    return found
