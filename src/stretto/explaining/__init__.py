"""Queries, automata and plans as text and pictures."""

from stretto.explaining.dot import Drawing, draw
from stretto.explaining.text import explain

__all__ = ["Drawing", "draw", "explain"]
