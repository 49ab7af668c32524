"""Give picows the face of a transport, and keep in hand what it says.

picows is written for the transports of asyncio and of TCP. With this one in their place the same
frames go over Unix sockets too, small messages leave in one write, and nothing leaves that picows
says by itself: it would refuse a frame before we have answered the one before.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.rpc.websocket_wire_loop import Wire


class Mouth:
    """Holds back what picows writes until it is let go or taken back."""

    def __init__(self, wire: Wire, given_up: Callable[[], None]) -> None:
        self._wire, self._given_up = wire, given_up
        self._held: list[bytes] = []
        self.is_free = False

    def let_go(self) -> None:
        """Write what was held back."""
        if self._held:
            held, self._held = self._held, []
            self._wire.push(b"".join(held))

    def take_back(self) -> None:
        """Never write what was held back."""
        if self._held:
            self._held = []

    # What picows asks of a transport.

    def get_write_buffer_size(self) -> int:
        """Zero while picows may write straight to the socket."""
        return self._wire.unsent_bytes if self.is_free else 1

    def write(self, data: bytes) -> None:
        """Write what the kernel did not take from picows, or hold it back."""
        if self.is_free:
            self._wire.push(data)
        else:
            self._held.append(data)

    def close(self) -> None:
        """Note that picows is done: it has refused a handshake, or broken off."""
        self._given_up()

    abort = close

    def get_extra_info(self, name: str) -> _Options | None:
        """The socket, as far as picows may know it, and nothing else."""
        return _Options(self._wire.fd) if name == "socket" else None


class _Options:
    """A socket whose options picows can neither read nor set: those of TCP fail on others."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def setsockopt(self, *_option: int) -> None:
        """Leave it as it is."""

    def getsockopt(self, *_option: int) -> int:
        """Say nothing."""
        return 0
