"""Connect to a host: by whichever of its addresses answers first, and only if it is trusted."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Final

import anyio

_NEXT_ADDRESS: Final = 0.25  # seconds before another address of the same name is tried as well
_ROOTS: Final = (  # where certificates are on machines whose Python does not know it
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)

_Address = tuple[int, tuple[str | int | bytes, ...]]  # a family, and an address in its form


def trusted() -> ssl.SSLContext:
    """Whom this machine trusts, or whoever `SSL_CERT_FILE` or `SSL_CERT_DIR` names."""
    context = ssl.create_default_context()
    known = ssl.get_default_verify_paths()
    if not known.cafile and not (known.capath and os.listdir(known.capath)):
        found = next(filter(os.path.isfile, _ROOTS), None)
        if found is not None:
            context.load_verify_locations(found)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def dial(host: str, port: int) -> socket.socket:
    """A connected socket; raises `OSError`, or `UnicodeError` for a name that none has.

    A host may have addresses that lead nowhere: the next one is tried a moment later, while the
    ones before may still answer.
    """
    addresses = await _addresses(host, port)
    race = _Race()
    with ExitStack() as undone:
        undone.callback(race.close)
        async with anyio.create_task_group() as tasks:
            for address in addresses:
                over = anyio.Event()
                tasks.start_soon(race.run, address, over, tasks.cancel_scope)
                with anyio.move_on_after(_NEXT_ADDRESS):
                    await over.wait()
        undone.pop_all()
    if race.won is None:
        raise race.failed[-1]
    return race.won


def told(error: BaseException) -> str:
    """What went wrong with a connection, in few words and without addresses."""
    match error:
        case ssl.SSLCertVerificationError(verify_message=problem):
            return f"its certificate does not hold: {problem}"
        case ssl.SSLError(reason=str(problem)):
            return problem.replace("_", " ").lower()
        case socket.gaierror(strerror=str(problem)):
            return problem.lower()
        case OSError(errno=int(number)):
            return os.strerror(number).lower()
        case _:
            return type(error).__name__


class _Race:
    """Several sockets that connect; the first that does is kept, and ends the race."""

    def __init__(self) -> None:
        self.won: socket.socket | None = None
        self.failed: list[OSError] = []

    async def run(self, address: _Address, over: anyio.Event, scope: anyio.CancelScope) -> None:
        family, place = address
        try:
            with ExitStack() as undone:
                mine = undone.enter_context(socket.socket(family, socket.SOCK_STREAM))
                mine.setblocking(False)
                await asyncio.get_running_loop().sock_connect(mine, place)
                if self.won is None:
                    self.won = mine
                    undone.pop_all()
                    scope.cancel()
        except OSError as error:
            self.failed.append(error)
        finally:
            over.set()

    def close(self) -> None:
        if self.won is not None:
            self.won.close()


async def _addresses(host: str, port: int) -> list[_Address]:
    """All addresses of a host; numbers are not looked up, for that would take a thread."""
    try:
        kind = socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
        return [(kind, (host, port))]
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [(family, place) for family, _, _, _, place in found]
