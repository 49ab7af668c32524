"""Decisions of the agent, without any effect."""
