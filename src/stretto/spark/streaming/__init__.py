"""Continuous queries: buckets of keys, each with a state, behind Spark's stateful operator.

A process of Spark's that only asks for names of states imports nothing else.
"""

from __future__ import annotations

#: The names of the operator's state variables: a bucket's state, and what arrived since it was written. A change of their kind takes
#: other names.
STATE = "stretto_bucket_v1"
JOURNAL = "stretto_journal_v1"
