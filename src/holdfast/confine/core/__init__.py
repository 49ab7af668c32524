"""Decisions about confinement, without I/O."""
