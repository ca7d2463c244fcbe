"""Every backend of expressions gives every node that it takes a meaning, and says so where it does not."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest

import stretto
from stretto.query import predicate as p


def backends(base: type[p.Visitor] = p.Visitor) -> Iterator[type[p.Visitor]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("stretto."):
            yield kind
        yield from backends(kind)


def test_every_backend_takes_every_node() -> None:
    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of an optional package
                importlib.import_module(module.name)
    found = {kind.__qualname__ for kind in backends() if not inspect.isabstract(kind)}
    assert {"_Exact", "_Bounded", "_Checker", "_Rows", "_OfColumns", "_Shown"} <= found
    missing = [
        f"{kind.__qualname__} has no method '{node.method}'"
        for kind in backends()
        for node in kind.takes
        if not callable(getattr(kind, node.method, None)) and not hasattr(node, "meaning")
    ]
    assert not missing


def test_a_backend_that_lacks_a_node_says_so() -> None:
    class Bare(p.Visitor):
        """Knows comparisons only."""

        def comparison(self, node: p.Comparison) -> str:
            return str(node)

    x = p.Attribute("x")
    with pytest.raises(NotImplementedError, match=r"Bare has no method 'like' for Like: x LIKE 'a%'"):
        Bare().visit(p.Like(x, "a%"))
    with pytest.raises(NotImplementedError, match="Bare has no method 'all_of' for And: x >= 1 AND x <= 2"):
        Bare().visit(p.Between(x, p.Constant(1), p.Constant(2)))


@pytest.mark.parametrize("node", p.NODES, ids=lambda node: node.__name__)
def test_inner_fields_are_the_ones_that_hold_expressions(node: type) -> None:
    """Traversal relies on them: a field of another type is none, and none is forgotten."""
    kinds = {name: kind for base in reversed(node.__mro__) for name, kind in inspect.get_annotations(base).items()}
    inside = tuple(
        name for name, kind in kinds.items() if any(word in str(kind) for word in ("Operand", "Predicate", "Constant"))
    )
    assert node.inner == inside  # type: ignore[attr-defined]
