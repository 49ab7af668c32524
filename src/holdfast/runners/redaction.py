"""Redact known secrets in the events of foreign agents.

The agent's own files may contain them. Our journal, reports and screens do not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager

import msgspec

from holdfast.runners.model import AnyEvent, Delta, RunnerCapabilities, RunnerHealth
from holdfast.runners.ports import AS_EVER, Conversation, ReadMemory, Runner
from holdfast.telemetry import KnownRedactor, StreamRedactor

# Runner decorators.


class RunnerWrapper:
    """Delegates everything to another runner; subclasses override one method."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @property
    def name(self) -> str:
        return self._runner.name

    @property
    def capabilities(self) -> RunnerCapabilities:
        return self._runner.capabilities

    async def health(self) -> RunnerHealth:
        return await self._runner.health()

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        async with self._runner.converse(session, memory) as conversation:
            yield conversation


_encode = msgspec.json.Encoder().encode


class RedactingRunner(RunnerWrapper):
    """A runner whose events contain no known secret."""

    def __init__(self, runner: Runner, known: Iterable[str]) -> None:
        super().__init__(runner)
        self._redactor = KnownRedactor(known)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        """Open a conversation with redacted events."""
        async with super().converse(session, memory) as conversation:
            yield _RedactingConversation(conversation, self._redactor)


class _RedactingConversation:
    def __init__(self, conversation: Conversation, redactor: KnownRedactor) -> None:
        self._conversation, self._redactor = conversation, redactor
        self.steer = conversation.steer
        self.answer = conversation.answer
        self.interrupt = conversation.interrupt

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        growing: dict[str, StreamRedactor] = {}  # by item id
        async with aclosing(self._conversation.take_turn(prompt, how)) as batches:
            async for batch in batches:
                clean = [self._clean(each, growing) for each in batch]
                if told := [each for each in clean if not isinstance(each, Delta) or each.text]:
                    yield told

    def _clean(self, event: AnyEvent, growing: dict[str, StreamRedactor]) -> AnyEvent:
        """Redact an event; a delta may be held back while it could be a prefix of a secret."""
        if isinstance(event, Delta):
            stream = growing.setdefault(event.item, self._redactor.stream())
            return Delta(event.item, event.sort, stream.feed(event.text))
        data = _encode(event)
        clean = self._redactor.data(data)
        return event if clean is data else msgspec.json.decode(clean, type=type(event))
