"""Processes on a server whose handles survive lost connections."""
