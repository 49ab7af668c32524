"""What a host needs of the draft that its session works in."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from holdfast.host.model import TurnClosed


class Revisited(NamedTuple):
    """A state of the draft that one can go back to."""

    revision: int
    checkpoint: str


class Delivered(NamedTuple):
    """So many paths went into the project; if any, a checkpoint has it as it was before."""

    paths: int
    checkpoint: str | None


class Workshop(Protocol):
    """The draft of a session, before and after a turn."""

    async def prepare(self) -> None:
        """Let the draft show what the person has changed meanwhile, and keep how it is."""
        ...

    async def revise(self, cause: str) -> Revisited | None:
        """Keep how the draft is now; None if nothing has changed."""
        ...

    async def publish(self, key: str) -> Delivered:
        """Let the project have what the draft changes; done before under this key, it is so."""
        ...

    async def report(self, closed: TurnClosed, made: Revisited | None) -> str:
        """Keep a report of a turn that is over, where a person finds it; return where."""
        ...
