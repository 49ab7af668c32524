"""Drafts, checkpoints and publications of a person's project."""
