"""End the host of a session however stuck it is: what it knew is in the journal."""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import anyio

_GONE_LONGEST: Final = 10.0
_LOOK_AGAIN: Final = 0.01


async def end_host(path: Path) -> None:
    """Kill whoever of our own user listens at a socket; return once nobody does.

    The kernel knows who listens, also if they answer nothing. Nobody there is as good.
    """
    with anyio.move_on_after(_GONE_LONGEST), suppress(FileNotFoundError, ConnectionRefusedError):
        while True:
            with suppress(ProcessLookupError, BlockingIOError):  # it has just ended; it is busy
                os.kill(listener(path), signal.SIGKILL)
            await anyio.sleep(_LOOK_AGAIN)


def listener(path: Path) -> int:
    """The process that listens at a socket; raises FileNotFoundError or ConnectionRefusedError."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.setblocking(False)
        connection.connect(str(path))
        if sys.platform != "linux":
            return connection.getsockopt(0, 2)  # SOL_LOCAL, LOCAL_PEERPID
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int(struct.unpack("=iII", credentials)[0])
