"""Sets of matches, budgets, timeouts and totals."""
