"""Figures of papers, redrawn from recorded results."""
