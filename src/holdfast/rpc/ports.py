"""What a connection needs from those below and above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.failures import Failure
from holdfast.rpc.model import Notification


class Transport(Protocol):
    """Carries whole messages both ways, in order, until one side ends it.

    A message is the bytes of one JSON text, without framing. Messages travel in batches: what one
    read yielded, and what one write should hand over. One task receives; any number may send.
    Once a transport has ended, `receive`, `send` and `offer` raise the same failure for ever:
    `ConnectionClosed` after an end in good order (also our own `aclose`), `ConnectionLost` after
    any other, `MessageTooLarge` when the other side broke the size limit.
    """

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields: at least one; raise what ended it.

        Reading is done by the event loop, not here: a task that receives without end lets all
        others run.
        """
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Hand messages over, in order, waiting while the other side is slow to read."""
        ...

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Hand messages over if that needs no waiting, and say whether it was done."""
        ...

    async def aclose(self) -> None:
        """End it and release all it holds; may be called again, and by any task."""
        ...


class NotificationSink(Protocol):
    """Is told all news of a connection, at once and in order; must neither wait nor raise."""

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Take what one read yielded: so many bytes."""
        ...

    def end(self, failure: Failure) -> None:
        """Learn that nothing will follow, and why; may be told again."""
        ...
