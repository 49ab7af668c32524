"""Guess from how a process ended whether its sandbox was in its way, as Codex does.

Nobody tells for sure: what is refused is refused by the kernel, and what a program makes of that
is its own business. It is used to ask a person, and never to decide anything.
"""

from __future__ import annotations

_SIGNS = (
    b"operation not permitted",
    b"permission denied",
    b"read-only file system",
    b"seccomp",
    b"sandbox",
    b"landlock",
    b"failed to write file",
)
_BAD_CALL = 128 + 31  # SIGSYS


def is_denied(status: int, last_words: bytes) -> bool:
    """Whether a process that was shut in probably failed because it was."""
    if status == 0:
        return False
    said = last_words.lower()
    return status == _BAD_CALL or any(sign in said for sign in _SIGNS)
