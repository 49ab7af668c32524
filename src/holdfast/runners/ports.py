"""What the host needs from whoever carries turns out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from holdfast.runners.model import AnyEvent, Capabilities, Health


class Conversation(Protocol):
    """A conversation with an agent in a place, one turn at a time."""

    def take_turn(self, prompt: str) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Carry a prompt out and yield what happens, as it comes, up to and with `TurnEnded`.

        Whatever goes wrong is in that last event. Who stops reading before it interrupts the turn.
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
    def capabilities(self) -> Capabilities:
        """What can be asked of it."""
        ...

    async def health(self) -> Health:
        """Say whether it can be used here and now; never raises."""
        ...

    def converse(self, session: str | None) -> AbstractAsyncContextManager[Conversation]:
        """Begin a conversation, or continue one by the word of an earlier `SessionKnown`.

        The agent's process ends with the block, and so does everything that it started.
        """
        ...
