"""``(φ+)+`` is ``φ+``: iterations of iterations.

Both read one or more times φ, one after the other. With gaps allowed in either, the result allows gaps; ``(φ:+):+`` is
``φ:+``. ``(φ+):+`` asks for adjacent groups, which is no more than ``φ+`` says.
"""

from __future__ import annotations

from stretto.query.algebra import Pattern, Plus, fold


def flatten_iterations(pattern: Pattern) -> Pattern:
    """Join directly nested iterations.

    >>> from stretto.query.algebra import Atom, Plus
    >>> print(flatten_iterations(Plus(Plus(Atom("A")))))
    A+
    """
    return fold(pattern, _flatten)


def _flatten(node: Pattern) -> Pattern:
    if isinstance(node, Plus) and isinstance(node.body, Plus) and node.gap is None is node.body.gap:
        return Plus(node.body.body, node.contiguous and node.body.contiguous)
    return node
