"""Queries, automata and plans as text and pictures."""

from stretto.explain.dot import Drawing, draw
from stretto.explain.text import explain

__all__ = ["Drawing", "draw", "explain"]
