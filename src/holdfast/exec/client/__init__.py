"""The client of an exec-server; runs in the process that uses it."""
