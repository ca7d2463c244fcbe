"""Python functions of arcs, as code for kernels."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stretto.automata.afa import UserFunction

if TYPE_CHECKING:
    from stretto.engines.afa.code import AfaCode

__all__ = ["PythonCode"]


class PythonCode:
    """Calls Python functions with named tuples."""

    def __init__(self, owner: AfaCode) -> None:
        self.owner = owner

    def fence(self, function: UserFunction) -> list[ast.stmt]:
        raise NotImplementedError

    def transfer(self, function: UserFunction) -> list[ast.stmt]:
        raise NotImplementedError
