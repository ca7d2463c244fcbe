"""Statements and places of the code of fences and transfers."""

from __future__ import annotations

import ast

from stretto.engines.shared.scalar_code import IS_NULL, Code, call, fault, faulty, name

REG = 6  #: the row of P that holds the register's first field

RAISED = 3  #: a Python function raised, or divided by zero


def fails(why: int) -> list[ast.stmt]:
    """Note why, unless something is noted already, and return 0."""
    note = ast.Assign([fault(ast.Store())], ast.Constant(why))
    return [ast.If(ast.UnaryOp(ast.Not(), faulty()), [note], []), returned(0)]


def returned(value: int) -> ast.stmt:
    return ast.Return(ast.Constant(value))


def place(field: int, match: str, context: ast.expr_context | None = None) -> ast.expr:
    """The word of a register's field: of the partial match ``old`` or ``new``."""
    at = ast.Tuple([ast.Constant(REG + field), name(match)], ast.Load())
    return ast.Subscript(name("P"), at, context or ast.Load())


def word_of(code: Code, kind: str) -> ast.expr:
    """A value as the word of a field of this kind."""
    if kind == "float":
        return call("word", code.value if code.kind == "float" else call("float", code.value))
    return code.value


def stored(found: list[tuple[ast.expr, ast.expr]]) -> list[ast.stmt]:
    """Write a register: for each field whether its value is known, and its word. All are computed before one is written."""
    body: list[ast.stmt] = []
    for at, (known, value) in enumerate(found):
        if not isinstance(known, ast.Constant):
            body.append(ast.If(ast.UnaryOp(ast.Not(), known), fails(IS_NULL), []))
        body.append(ast.Assign([ast.Name(f"w{at}", ast.Store())], value))
    if any(notes(known) or notes(value) for known, value in found):
        body.append(ast.If(faulty(), [returned(0)], []))
    body += [ast.Assign([place(at, "new", ast.Store())], name(f"w{at}")) for at in range(len(found))]
    return [*body, returned(1)]


def notes(code: ast.expr) -> bool:
    """Whether code may note a fault."""
    return any(isinstance(node, ast.Name) and node.id == "F" for node in ast.walk(code))
