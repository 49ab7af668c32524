"""Try to listen and be heard, over the loopback interface and over a Unix socket."""

from __future__ import annotations

import os
import socket

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts, scratch

_WAIT_LONGEST = 1.0


def loopback(_: str) -> Facts:
    """Bind a free port of 127.0.0.1 and connect to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return _knock(server, socket.AF_INET)


def unix(directory: str) -> Facts:
    """Bind a socket that only we may open, and connect to it."""
    with scratch(directory) as place, socket.socket(socket.AF_UNIX) as server:
        os.chdir(place)  # the name of the scratch directory is longer than that of a real socket
        server.bind("s")
        os.chmod("s", 0o600)
        server.listen(1)
        return _knock(server, socket.AF_UNIX)


def _knock(server: socket.socket, family: socket.AddressFamily) -> Facts:
    server.settimeout(_WAIT_LONGEST)
    with socket.socket(family) as client:
        client.settimeout(_WAIT_LONGEST)
        client.connect(server.getsockname())
        inside, _ = server.accept()
        with inside:
            inside.sendall(b"!")
            return {"answered": client.recv(1) == b"!"}


if __name__ == "__main__":
    answer(loopback, unix)
