"""Engines: a machine and batches of events in, matches out."""
