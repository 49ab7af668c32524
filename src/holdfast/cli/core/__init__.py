"""Decide what is shown, and how, before anything is written."""
