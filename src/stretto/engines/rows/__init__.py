"""Row patterns (``MATCH_RECOGNIZE``) over rows that are sorted by partition and order.

From the last row back, the engine finds as which positions of the pattern each row can be taken so that a match is
completed; then a match is found by going forward along what is preferred, and never back unless a condition reads rows
of the match so far.
"""
