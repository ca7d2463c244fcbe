"""The operators of plans: the one list of them. A plan is a graph of nodes, as values (:mod:`stretto.dataflow.node`)."""

from __future__ import annotations

from stretto.arguments import check_arguments
from stretto.dataflow.node import Fixpoint, Loop, Node, Recursion, Relation, Row
from stretto.dataflow.operators.aggregate import Aggregate, Item, aggregate
from stretto.dataflow.operators.constant import Constant
from stretto.dataflow.operators.difference import Difference, difference
from stretto.dataflow.operators.distinct import Distinct, distinct
from stretto.dataflow.operators.join import Join, join
from stretto.dataflow.operators.lifetime import Lifetime, window
from stretto.dataflow.operators.project import Project, project, rename
from stretto.dataflow.operators.recognize import Recognize, recognize
from stretto.dataflow.operators.source import Source
from stretto.dataflow.operators.union import Union, union
from stretto.dataflow.operators.where import Where, where

__all__ = [
    "OPERATORS",
    "Aggregate",
    "Constant",
    "Difference",
    "Distinct",
    "Fixpoint",
    "Item",
    "Join",
    "Lifetime",
    "Loop",
    "Node",
    "Project",
    "Recognize",
    "Recursion",
    "Row",
    "Source",
    "Stream",
    "Union",
    "Where",
]

#: The nodes that JSON text names, beside the two of loops.
OPERATORS: tuple[type[Node], ...] = (
    Source,
    Constant,
    Lifetime,
    Where,
    Project,
    Join,
    Union,
    Distinct,
    Aggregate,
    Difference,
    Recognize,
)


@check_arguments
class Stream(Relation):
    """A changing relation, a bag of rows at every time, and what can be made of it.

    Its methods give new streams, and nothing runs before a :class:`~stretto.dataflow.Dataflow` is made of those that are wanted.

    Attributes
    ----------
    node
        The plan that makes it.
    """

    where = where
    project = project
    rename = rename
    distinct = distinct
    window = window
    aggregate = aggregate
    union = union
    join = join
    difference = difference
    recognize = recognize
