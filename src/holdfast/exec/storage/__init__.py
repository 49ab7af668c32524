"""Retention of process output: splice, stream files, index."""
