"""CEQL, the query language of the CORE paper (section 2): from text to a
:class:`~stretto.query.query.ParsedQuery`.

>>> query = parse("SELECT * FROM Stock WHERE SELL AS a; BUY+ AS b FILTER a[price > 100] WITHIN 1 minute")
>>> print(query.pattern)
(((SELL AS a) ; ((BUY+) AS b)) FILTER a[price > 100])
>>> query.window.seconds
Decimal('60')
"""

from stretto.languages.ceql.parser import parse

__all__ = ["parse"]
