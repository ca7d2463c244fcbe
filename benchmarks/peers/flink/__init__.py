"""Flink SQL's MATCH_RECOGNIZE as a peer, in an environment of its own."""
