"""What of a process must not be dropped, for whoever is there or may come back."""

from __future__ import annotations

import anyio

from holdfast.exec.retention_loop import Retention

COME_BACK_LONGEST = 30.0
"""Seconds that what a client has not taken is kept for it when it, or its server, is gone."""


class Hold:
    """One process's output, held for one client at a time."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._needed: int | None = None
        self._until: float | None = None
        self._is_over = False

    @property
    def is_wanted(self) -> bool:
        """Whether somebody may still need what the process has said."""
        return self._needed is not None and self._needed < self._retention.next_seq

    @property
    def is_ending(self) -> bool:
        """Whether `tend` will let go of it one day."""
        return self._until is not None

    def keep_from(self, seq: int) -> None:
        """Drop nothing from this event on: somebody is there who may need it."""
        self._until = None
        self._set(seq, is_followed=True)

    def let_go(self, *, after: float) -> None:
        """Drop what finds no room again, so many seconds from now."""
        now = anyio.current_time()
        self._until = now + after
        self._set(self._needed, is_followed=False)
        self.tend(now)

    def tend(self, now: float) -> None:
        """Let go where it is time for that."""
        if self._until is not None and now >= self._until:
            self._until = None
            self._set(None, is_followed=False)

    def end(self) -> None:
        """Change nothing any more: the files are closed."""
        self._is_over = True

    def _set(self, seq: int | None, *, is_followed: bool) -> None:
        self._needed = seq
        if not self._is_over:
            self._retention.keep_from(seq, is_followed=is_followed)
