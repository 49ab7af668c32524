"""Journalled transactions: publish and restore as one change, or none."""
