"""Pathway as a peer: an incremental engine in an environment of its own."""
