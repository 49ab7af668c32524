"""Adapters to whoever carries a turn out, all in the same words."""
