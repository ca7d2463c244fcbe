"""The exit codes of all commands, beside 0."""

from __future__ import annotations

#: The data or a test, the arguments, the text of a query.
FAILED, MISUSED, BAD_QUERY = 1, 2, 3
