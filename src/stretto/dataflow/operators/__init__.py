"""Operators of the temporal algebra, one a file (FFP paper, sections 2, 3.3 and 5).

Each takes rows at a port and gives the rows that follow from them: no operator waits for a punctuation (S2), nor gives anything that
begins before what it was given (S3). A punctuation only says what may be forgotten.
"""
