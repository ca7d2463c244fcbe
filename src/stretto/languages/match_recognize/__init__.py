"""``MATCH_RECOGNIZE``, SQL's clause for patterns of rows: its text becomes a :class:`~stretto.query.row_pattern.RowQuery`."""

from stretto.languages.match_recognize.parser import parse

__all__ = ["parse"]
