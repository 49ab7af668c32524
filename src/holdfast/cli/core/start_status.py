"""Decide with which status to end when a command did not start, as shells do."""

from __future__ import annotations

NOT_FOUND, NOT_EXECUTABLE = 127, 126

_STATUSES = {
    "no such file or directory": NOT_FOUND,
    "permission denied": NOT_EXECUTABLE,
    "exec format error": NOT_EXECUTABLE,
    "is a directory": NOT_EXECUTABLE,
}


def start_status(reason: str) -> int:
    """127 if there is no such command, 126 if it cannot be executed, 1 if it is neither."""
    said = reason.lower().partition(" (os error")[0]
    return _STATUSES.get(said, 1)
