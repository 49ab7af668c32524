"""Ports of a connection: the transport below it and the notification sinks above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.failures import Failure
from holdfast.rpc.model import Notification


class Transport(Protocol):
    """Carries whole messages both ways, in order, until one side ends it.

    A message is the bytes of one JSON text, without framing. Messages travel in batches: what one
    read yielded, and what one write should hand over. One task receives; any number may send. Once
    a transport has ended, `receive`, `send` and `offer` raise the same failure on every call:
    `ConnectionClosed` after a clean close (also our own `aclose`), `ConnectionLost` after any other
    end, `MessageTooLarge` when the other side exceeded the size limit.
    """

    async def receive(self) -> Sequence[bytes]:
        """Wait for the messages that one read yields, at least one; raises the failure that ended
        it.

        The event loop reads, not this call: a task that receives in a loop lets all other tasks
        run.
        """
        ...

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages in order; waits while the other side applies backpressure."""
        ...

    def offer(self, messages: Sequence[bytes]) -> bool:
        """Send messages if the write buffer has room; returns whether it did."""
        ...

    async def aclose(self) -> None:
        """Close the transport and release its descriptors; idempotent, and callable from any
        task.
        """
        ...


class NotificationSink(Protocol):
    """Receives all notifications of a connection synchronously; must neither wait nor raise."""

    def put(self, batch: Sequence[Notification], size: int) -> None:
        """Take the notifications of one read, with the size of that read in bytes."""
        ...

    def end(self, failure: Failure) -> None:
        """Take the failure that ended the connection; may be called more than once."""
        ...
