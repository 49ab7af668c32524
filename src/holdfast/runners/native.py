"""Carry turns out by our own agent, in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final

import msgspec

from holdfast import __version__
from holdfast.agent import OPTIONS, Crashes, Kit, Talk, converse
from holdfast.failures import Failure
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import (
    AnyEvent,
    Capabilities,
    Health,
    SessionKnown,
    TurnStarted,
)
from holdfast.runners.native_events import translated
from holdfast.runners.ports import AS_EVER, Memory

NAME: Final = "native"
_WORD: Final = "native-1"  # of every conversation: all that it is stands in the memory

Kits = Callable[[], AbstractAsyncContextManager[Kit]]
"""Gives what a conversation is held with; whatever its tools have started ends with the block."""

Examine = Callable[[], Awaitable[None]]
"""Raises what a conversation would lack; nothing is started, sent or changed for that."""


async def _nothing_lacks() -> None:
    """Whatever is wanted is there."""


class NativeRunner:
    """Our own agent; how often it crashes is counted over all of its conversations."""

    name = NAME
    capabilities = Capabilities(
        continues=True, steers=True, asks=True, confines=True, options=OPTIONS
    )

    def __init__(
        self, kits: Kits, crashes: Crashes | None = None, examine: Examine = _nothing_lacks
    ) -> None:
        """Count crashes on top of those of an earlier runner of the same session."""
        self._kits, self._examine = kits, examine
        self._crashes = crashes or Crashes()

    async def health(self) -> Health:
        """Healthy if everything is there that a conversation needs; none is begun for that."""
        try:
            await self._examine()
        except Failure as failure:
            return Health(False, reason=failure.user_message)
        return Health(True, version=__version__)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: Memory
    ) -> AsyncGenerator[NativeConversation]:
        """Begin a conversation, or go on where the memory of it ends."""
        if session not in (None, _WORD):
            raise SessionUnknown(runner=NAME, session=session)

        def memos() -> Iterator[msgspec.Raw]:
            return (each.memo for each in memory())

        async with self._kits() as kit, converse(kit, memos, self._crashes) as talk:
            yield NativeConversation(talk)


class NativeConversation:
    """A conversation with our own agent."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Take a turn; what the agent keeps comes among its events, before it acts on it."""
        first: tuple[AnyEvent, ...] = (SessionKnown(_WORD), TurnStarted())
        async with aclosing(self._talk.take_turn(prompt, how)) as batches:
            async for batch in batches:
                yield (*first, *translated(batch))
                first = ()

    async def steer(self, text: str) -> bool:
        """Add to what the running turn was asked; say whether it was taken."""
        return await self._talk.steer(text)

    async def answer(self, question: str, answer: str) -> bool:
        """Answer what the agent asked; say whether it was still waiting for that."""
        return self._talk.answer(question, answer)

    async def interrupt(self) -> None:
        """End the running turn, with all that it started."""
        self._talk.interrupt()
