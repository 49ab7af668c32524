"""Decisions about a Codex conversation, without I/O."""
