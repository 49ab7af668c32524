"""Be a process outside of the sandbox: listen, answer, and notice signals.

python -I neighbour.py DIRECTORY ABSTRACT        prints one JSON object when it is ready

It ends with its standard input.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Final

_TRACER, _ANYBODY = 0x5961_6D61, -1  # PR_SET_PTRACER, and its most generous value


def main() -> None:
    """Open one socket of each kind, print their addresses, and answer until stdin closes."""
    directory, abstract = Path(sys.argv[1]), sys.argv[2]
    signal.signal(signal.SIGUSR1, _noticing(directory / SIGNALLED))
    ctypes.CDLL(None).prctl(_TRACER, ctypes.c_long(_ANYBODY), 0, 0, 0)
    path = str(directory / "socket")
    streams = {
        _listening(socket.AF_UNIX, path): path,
        _listening(socket.AF_UNIX, f"\0{abstract}"): abstract,
    }
    tcp = _listening(socket.AF_INET, ("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    told = {
        "neighbour": os.getpid(),
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "path_socket": path,
        "abstract_socket": abstract,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    with selectors.DefaultSelector() as selector:
        for each in (*streams, tcp, udp):
            selector.register(each, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while _answered([key.fileobj for key, _ in selector.select()]):
            continue


SIGNALLED: Final = "signalled"


def _noticing(witness: Path) -> Callable[[int, FrameType | None], None]:
    def notice(_number: int, _frame: FrameType | None) -> None:
        witness.touch()

    return notice


def _answered(ready: list[object]) -> bool:
    for each in ready:
        if not isinstance(each, socket.socket):
            return False  # the end of our standard input
        if each.type == socket.SOCK_DGRAM:
            said, sender = each.recvfrom(64)
            each.sendto(said, sender)
        else:
            with each.accept()[0] as caller:
                caller.settimeout(1.0)
                caller.send(caller.recv(64))
    return True


def _listening(family: int, address: str | tuple[str, int]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(16)
    return listener


if __name__ == "__main__":
    main()
