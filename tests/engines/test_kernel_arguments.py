"""What kernels are called with."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import stretto


def test_no_two_bundles_of_arrays_look_the_same_to_numba() -> None:
    """Numba finds the type of a named tuple by its name, its fields and what they hold: of two classes that agree in these, the
    second one gets the type of the first, fits no compiled signature, and has all its arrays typed anew, in Python, in each call.
    """
    found: dict[tuple[str, tuple[str, ...]], set[type]] = {}
    for module in pkgutil.walk_packages(stretto.__path__, "stretto."):
        if module.name.startswith(("stretto.engines", "stretto.columns")):
            for name, value in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if issubclass(value, tuple) and hasattr(value, "_fields"):
                    found.setdefault((name, value._fields), set()).add(value)
    assert [key for key, classes in found.items() if len(classes) > 1] == []
