"""Decisions about a conversation, without I/O."""
