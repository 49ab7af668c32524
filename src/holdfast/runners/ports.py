"""What the host needs from whoever carries turns out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, Protocol

from holdfast.runners.model import AnyEvent, MemoryRecorded, RunnerCapabilities, RunnerHealth

ReadMemory = Callable[[], Iterable[MemoryRecorded]]
"""Reads back, in order, all that a runner has had kept of its conversation so far."""

AS_EVER: Final[Mapping[str, str]] = MappingProxyType({})
"""A turn is to be taken as the runner takes them if nothing is said."""


class Conversation(Protocol):
    """A conversation with an agent in a place, one turn at a time."""

    def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Carry a prompt out and yield what happens, as it comes, up to and with `TurnEnded`.

        A batch is on disk when the next one is asked for. `how` has only those of the runner's
        options that the person has a wish about. Whatever goes wrong is in the last event. Who
        stops reading before it interrupts the turn.
        """
        ...

    async def steer(self, text: str) -> bool:
        """Add to what the running turn was asked; say whether it was taken."""
        ...

    async def answer(self, question: str, answer: str) -> bool:
        """Answer what the agent asked; say whether it was still waiting for that."""
        ...

    async def interrupt(self) -> None:
        """End the running turn, within seconds, with all that it started; its events say so."""
        ...


class Runner(Protocol):
    """One sort of agent, such that everything above can do with any of them."""

    @property
    def name(self) -> str:
        """The word that a person chooses it by."""
        ...

    @property
    def capabilities(self) -> RunnerCapabilities:
        """What can be asked of it."""
        ...

    async def health(self) -> RunnerHealth:
        """Say whether it can be used here and now; never raises."""
        ...

    def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AbstractAsyncContextManager[Conversation]:
        """Begin a conversation, or continue one by the word of an earlier `SessionKnown`.

        The agent's process ends with the block, and so does everything that it started.
        """
        ...
