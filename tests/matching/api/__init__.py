"""One call over a table."""
