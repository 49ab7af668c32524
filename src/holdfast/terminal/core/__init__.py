"""Decisions about what a person sees and means, without I/O."""
