"""Ports of the host to runners."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Final, Protocol

from holdfast.runners.model import AnyEvent, MemoryRecorded, RunnerCapabilities, RunnerHealth

ReadMemory = Callable[[], Iterable[MemoryRecorded]]
"""Reads back, in order, the state that a runner has stored in the journal."""

AS_EVER: Final[Mapping[str, str]] = MappingProxyType({})
"""No options: the runner's defaults."""


class Conversation(Protocol):
    """A conversation with an agent, one turn at a time."""

    def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Run a prompt, and yield events in batches; the last event is `TurnEnded`.

        The caller makes a batch durable before it asks for the next. `how` contains options that
        the runner supports. Failures are in the last event, never raised. Closing the generator
        early interrupts the turn.
        """
        ...

    async def steer(self, text: str) -> bool:
        """Add input to the running turn; False if it is not accepted."""
        ...

    async def answer(self, question: str, answer: str) -> bool:
        """Answer a question; False if it is no longer open."""
        ...

    async def interrupt(self) -> None:
        """End the running turn and its processes within seconds; `TurnEnded` follows."""
        ...


class Runner(Protocol):
    """An adapter to one kind of agent."""

    @property
    def name(self) -> str:
        """The name that users choose it by."""
        ...

    @property
    def capabilities(self) -> RunnerCapabilities: ...

    async def health(self) -> RunnerHealth:
        """Check whether the runner can be used; never raises."""
        ...

    def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AbstractAsyncContextManager[Conversation]:
        """Start a conversation, or continue one by the id of an earlier `SessionKnown`.

        Leaving the context ends the agent's process and its descendants.
        """
        ...
