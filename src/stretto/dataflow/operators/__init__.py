"""Operators of the temporal algebra, one a file (FFP paper, sections 2, 3.3 and 5): add one here and in :mod:`stretto.dataflow.plan`.

A file has the method of streams, the node with its checks and its JSON, and the running operator with its kernel. That takes rows at
a port and gives the rows that follow from them: it waits for no punctuation (S2), and gives nothing that begins before what it was
given (S3). A punctuation only says what may be forgotten.
"""
