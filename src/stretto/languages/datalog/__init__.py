"""Datalog, read, checked and ordered: what a dataflow makes streams of.

>>> program = read_program("reachable(X, Y) :- link(X, Y). reachable(X, Z) :- link(X, Y), reachable(Y, Z).")
>>> print(program)
reachable(X, Y) :- link(X, Y).
reachable(X, Z) :- link(X, Y), reachable(Y, Z).
"""

from stretto.languages.datalog.ordering import Assign, Exclude, Filter, Ordered, Scan
from stretto.languages.datalog.parser import read_program
from stretto.languages.datalog.program import Checked, Group, Relation, checked
from stretto.languages.datalog.tree import Aggregate, Atom, Head, Literal, Program, Rule

__all__ = [
    "Aggregate",
    "Assign",
    "Atom",
    "Checked",
    "Exclude",
    "Filter",
    "Group",
    "Head",
    "Literal",
    "Ordered",
    "Program",
    "Relation",
    "Rule",
    "Scan",
    "checked",
    "read_program",
]
