"""Questions that an agent waits for, and the answers to them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import anyio


class PendingReply:
    """What will have been answered to one question."""

    def __init__(self) -> None:
        self._given: str | None = None
        self._known = anyio.Event()

    def give(self, answer: str) -> bool:
        """Settle it; of two answers, the first counts."""
        if self._given is not None:
            return False
        self._given = answer
        self._known.set()
        return True

    async def wait(self) -> str:
        """Wait for the reply and return it."""
        await self._known.wait()
        assert self._given is not None
        return self._given


class PendingReplies:
    """Every question that is open."""

    def __init__(self) -> None:
        self._open: dict[str, PendingReply] = {}

    @contextmanager
    def open(self, question: str) -> Generator[PendingReply]:
        """Expect an answer for as long as the block lasts."""
        answer = self._open[question] = PendingReply()
        try:
            yield answer
        finally:
            del self._open[question]

    def answer(self, question: str, answer: str) -> bool:
        """Deliver a reply; return whether a task waits for it."""
        waiting = self._open.get(question)
        return waiting is not None and waiting.give(answer)
