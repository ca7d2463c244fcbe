"""Matchers."""
