"""Decisions about how turns are carried out, without I/O."""
