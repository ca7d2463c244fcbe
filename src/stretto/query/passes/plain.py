"""Conditions on one event, with the attributes' own names in place of references."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from stretto.query import predicate as p
from stretto.query.sase import Element, Index, SaseQuery

__all__ = ["plain", "renamed"]


def plain(condition: p.Predicate, query: SaseQuery, own: Index) -> p.Predicate:
    """A condition whose references all name one event of a component, as a condition on that event."""
    names = {}
    for name in p.attributes(condition):
        reference = query.references[name]
        assert isinstance(reference, Element)
        assert reference.index is own
        names[name] = reference.attribute
    return renamed(condition, names)


def renamed(condition: p.Predicate, names: dict[str, str]) -> p.Predicate:
    """A condition with other names of attributes."""
    found: p.Predicate = _renamed(condition, names)
    return found


def _renamed(node: Any, names: dict[str, str]) -> Any:
    if isinstance(node, p.Attribute):
        return p.Attribute(names[node.name], node.span)
    if isinstance(node, tuple):
        return tuple(_renamed(part, names) for part in node)
    if not isinstance(node, p.Expression):
        return node
    return replace(node, **{one.name: _renamed(getattr(node, one.name), names) for one in fields(node) if one.init})
