"""Warnings of what keeps matches away."""
