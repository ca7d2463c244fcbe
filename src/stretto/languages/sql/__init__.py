"""SQL around ``MATCH_RECOGNIZE``: where the clauses are, what they read, and what is left for another engine to run."""

from stretto.languages.sql.statement import Clause, Statement, read_statement
from stretto.languages.sql.windows import Rewritten

__all__ = ["Clause", "Rewritten", "Statement", "read_statement"]
