"""What a wire asks of the kernel for its socket."""

from __future__ import annotations

import socket
import struct

import pytest

from holdfast.rpc.transports.websocket_wire_loop import SocketWire

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        not hasattr(socket, "TCP_CONGESTION"),
        reason="this system has one way to send, TCP_CONGESTION",
    ),
]

NAME_BYTES = 16
RESET = struct.pack("ii", 1, 0)  # linger, for no time


class Deaf:
    """Hears of nothing."""

    def read_done(self) -> None: ...

    def read_ended(self, error: str) -> None: ...

    def write_failed(self, error: str) -> None: ...

    def writable(self) -> None: ...


def way_of(connection: socket.socket) -> bytes:
    """How the kernel decides what to send when."""
    named = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, NAME_BYTES)
    return named.rstrip(b"\0")


def accepted(server: socket.socket, own: str) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection that comes from an address of this machine."""
    client = socket.create_connection(server.getsockname(), source_address=(own, 0))
    return server.accept()[0], client


@pytest.mark.parametrize(("own", "is_same"), [("127.0.0.1", True), ("127.0.0.2", False)])
async def test_only_what_stays_at_one_address_is_sent_unpaced(own: str, *, is_same: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours, client = accepted(server, own)
        with client:
            before = way_of(ours)
            wire = SocketWire(ours, Deaf())
            assert way_of(ours) == (b"reno" if is_same else before)
            wire.release()


async def test_one_who_is_gone_at_once_is_told_apart_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours, client = accepted(server, "127.0.0.1")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        client.close()
        wire = SocketWire(ours, Deaf())  # raises nothing: whoever reads learns it
        wire.release()
