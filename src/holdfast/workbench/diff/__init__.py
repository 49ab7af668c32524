"""Differences between texts and between trees, without I/O."""
