"""Engines to compare with, each in its own interpreter and process."""
