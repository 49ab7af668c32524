"""Decisions about processes and their output, without I/O."""
