"""Iterative queries over streams: cyclic plans of temporal operators that know how far they have got (FFP paper).

>>> from stretto.dataflow import Dataflow, fixpoint, stream
>>> links = stream("links", {"src": str, "dst": str})
>>> reach = fixpoint(
...     lambda reach: links.union(
...         links.join(reach, on={"dst": "src"}).project(src="src", dst="dst_right")
...     ).distinct(),
...     schema=links.schema,
... )
>>> flow = Dataflow(reach=reach)
>>> flow.push("links", [{"src": "a", "dst": "b", "vs": 1}, {"src": "b", "dst": "a", "vs": 3}], punctuation=10)
>>> flow.run_until_idle()
>>> sorted((row["src"], row["dst"], row["vs"]) for row in flow.output("reach").to_pylist())
[('a', 'a', 3), ('a', 'b', 1), ('b', 'a', 3), ('b', 'b', 3)]
>>> flow.punctuation("reach")
10
"""

from stretto.dataflow.datalog import datalog
from stretto.dataflow.plan import Stream
from stretto.dataflow.run.flow import Dataflow
from stretto.dataflow.stream import constant, fixpoint, fixpoints, stream

__all__ = ["Dataflow", "Stream", "constant", "datalog", "fixpoint", "fixpoints", "stream"]


def __dir__() -> list[str]:
    """What is public, and no module that happens to be imported."""
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
