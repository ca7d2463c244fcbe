"""Counts, sums and extremes over all matches, of which none is listed."""
