"""Conditions on one event, with the attributes' own names in place of references."""

from __future__ import annotations

from stretto.query import predicate as p
from stretto.query.moving import marked
from stretto.query.sase import Element, Index, SaseQuery


def plain(condition: p.Predicate, query: SaseQuery, own: Index) -> p.Predicate:
    """Turn a condition whose references all name one event of a component into a condition on that event."""
    names = {}
    for name in p.attributes(condition):
        reference = query.references[name]
        assert isinstance(reference, Element)
        assert reference.index is own
        names[name] = reference.attribute
    return marked(p.renamed(condition, names), query.moving)
