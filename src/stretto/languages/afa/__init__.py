"""What people write at the arcs of an AFA: fences and transfers over ``e.`` and ``r.`` names, as text or as Python functions.

>>> import pyarrow as pa
>>> scope = Scope({"price": pa.float64()}, {"low": pa.float64(), "n": pa.int64()})
>>> print(read_fence("e.price < r.low AND r.n > 3", scope))
e.price < r.low AND r.n > 3
>>> print(*read_transfer("n = r.n + 1, low = e.price", scope))
e.price (r.n + 1)
"""

from stretto.languages.afa.functions import read_function
from stretto.languages.afa.parser import read_fence, read_transfer, read_window
from stretto.languages.afa.scope import Scope

__all__ = [
    "Scope",
    "read_fence",
    "read_function",
    "read_transfer",
    "read_window",
]
