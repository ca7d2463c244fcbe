"""SASE+, the query language of the SASE+ paper (section 2): from text to a :class:`~stretto.query.sase.SaseQuery`.

A query without WHERE skips till the next match and asks for nothing but the types.

>>> query = parse("PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match { [symbol] AND b.volume < 80%*a[a.LEN].volume }")
>>> print(*query.components, sep=", ")
Stock+ a[], Stock b
>>> query.partition_by
('symbol',)
>>> print(query.condition)
b.volume < (0.8 * a[a.LEN].volume)
"""

from stretto.languages.sase.parser import is_sase, parse

__all__ = ["is_sase", "parse"]
