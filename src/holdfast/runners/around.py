"""A runner around another one, which it is in all that is not said otherwise."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from holdfast.runners.model import Capabilities, Health
from holdfast.runners.ports import Conversation, Memory, Runner


class Around:
    """A runner that passes everything on; who builds on it changes one thing."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def name(self) -> str:
        """The word that a person chooses it by."""
        return self._runner.name

    @property
    def capabilities(self) -> Capabilities:
        """What can be asked of it."""
        return self._runner.capabilities

    async def health(self) -> Health:
        """Say whether it can be used here and now; never raises."""
        return await self._runner.health()

    @asynccontextmanager
    async def converse(self, session: str | None, memory: Memory) -> AsyncGenerator[Conversation]:
        """Begin a conversation, or continue one by the word of an earlier `SessionKnown`."""
        async with self._runner.converse(session, memory) as conversation:
            yield conversation
