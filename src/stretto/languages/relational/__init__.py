"""Conditions and values over the columns of one row, as the operators of a dataflow take them.

>>> import pyarrow as pa
>>> row = {"cost": pa.int64(), "name": pa.string()}
>>> print(read_condition("cost > 3 AND name != 'x'", row), "|", read_value("cost + 1", row))
cost > 3 AND name != 'x' | (cost + 1)
"""

from stretto.languages.relational.parser import read_condition, read_value

__all__ = ["read_condition", "read_value"]
