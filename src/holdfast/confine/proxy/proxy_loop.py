"""Filtering proxy: connects sandboxed clients to hosts of an allow list only.

One port accepts HTTP (CONNECT and absolute URLs) and SOCKS 5. The listening socket may belong to
the sandbox's network namespace: its clients then reach the proxy and nothing else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from holdfast.confine.proxy.rules import (
    HEAD_END,
    HTTP_CONNECTED,
    SOCKS,
    SOCKS_GREETING,
    SOCKS_UNFIT,
    Address,
    AllowList,
    DenialReason,
    ProxyRequest,
    Target,
    Traffic,
    http_answer,
    read_http,
    read_socks,
    socks_answer,
    socks_wanting,
)

Resolve = Callable[[str], Awaitable[Sequence[Address]]]

_HEAD_BYTES_MAX: Final = 64 * 1024  # also what is buffered in each direction
_NO_PASSWORD: Final = 0
_FULL_PAUSE: Final = 0.1  # seconds before another try when the machine has no room


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """How much a proxy does at once, and for how long; times are in seconds."""

    connections_max: int = 256
    ask_longest: float = 10.0
    dial_longest: float = 15.0
    idle_longest: float = 600.0
    linger_longest: float = 2.0


async def resolve(name: str) -> Sequence[Address]:
    """All addresses of a name, as this machine knows them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    hosts = (str(each[4][0]) for each in found)
    return [ipaddress.ip_address(host) for host in hosts if "%" not in host]


class FilteringProxy:
    """Accepts clients and connects them to allowed targets; `traffic` records each request."""

    def __init__(
        self,
        allowed: AllowList,
        *,
        resolve: Resolve = resolve,
        limits: ProxyLimits | None = None,
    ) -> None:
        self.traffic = Traffic()
        self._allowed = allowed
        self._resolve = resolve
        self._limits = limits or ProxyLimits()

    async def serve(self, listener: socket.socket) -> None:
        """Serve until cancelled; when there are too many, the others wait in the kernel."""
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(self._limits.connections_max)
        listener.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await room.acquire()
                try:
                    client, _ = await loop.sock_accept(listener)
                except OSError:  # no descriptor left, or the client has left again
                    room.release()
                    await asyncio.sleep(_FULL_PAUSE)
                    continue
                task = tasks.create_task(self._attend(client))
                task.add_done_callback(lambda _: room.release())

    async def _attend(self, client: socket.socket) -> None:
        line = await _Line.over(client)
        with suppress(OSError, EOFError):  # one side closed: closing both notifies the other
            try:
                await self._serve(line)
            finally:
                line.close()

    async def _serve(self, line: _Line) -> None:
        try:
            async with asyncio.timeout(self._limits.ask_longest):
                first = await line.reader.readexactly(1)
                is_socks = first[0] == SOCKS
                asked = await (_socks(line) if is_socks else _http(line, first))
        except TimeoutError:
            await self._refuse(line, http_answer(408, "nothing was asked for in time"))
            return
        except asyncio.LimitOverrunError:
            await self._refuse(line, http_answer(431, "the head of the request is too long"))
            return
        tell = _socks_answer if is_socks else http_answer
        server = await self._dialled(asked)
        if isinstance(server, _No):
            await self._refuse(line, tell(server.status, server.reason))
            return
        try:
            if asked is not None and not asked.is_tunnel:
                server.writer.write(asked.opening)
            else:
                line.writer.write(socks_answer(200) if is_socks else HTTP_CONNECTED)
            await self._join(line, server)
        finally:
            server.close()

    async def _dialled(self, asked: ProxyRequest | None) -> _Line | _No:
        """A connection to the target, or the reason for refusing it."""
        if asked is None:
            self.traffic.stop(None, DenialReason.UNCLEAR)
            return _No(400, "this request names no host clearly")
        target = asked.target
        if not self._allowed.allows(target):
            self.traffic.stop(target, DenialReason.UNLISTED)
            return _No(403, f"{target} is not on the list of this sandbox")
        try:
            async with asyncio.timeout(self._limits.dial_longest):
                line = await self._dial(target)
        except (OSError, UnicodeError) as error:  # a name may be too odd for the resolver
            return _No(502, f"{target} cannot be reached ({error})")
        if line is None:
            self.traffic.stop(target, DenialReason.NEARBY)
            return _No(403, f"{target} leads to an address that is not public")
        self.traffic.let_through(target)
        return line

    async def _dial(self, target: Target) -> _Line | None:
        """A line to one of the very addresses that were judged; None if none may be used."""
        is_name = isinstance(target.host, str)
        found = await self._resolve(target.host) if isinstance(target.host, str) else [target.host]
        failed: OSError | None = None
        for address in found:
            if not self._allowed.admits(address, target.port):
                continue
            try:
                line = await _Line.to(address, target.port)
            except OSError as error:
                failed = error
                continue
            # A public address can be this machine's own, and its services are not for the sandbox.
            if is_name and line.is_to_itself and not self._lists(address, target.port):
                line.close()
                continue
            return line
        if failed is not None:
            raise failed
        return None

    def _lists(self, address: Address, port: int) -> bool:
        return self._allowed.allows(Target(address, port))

    async def _refuse(self, line: _Line, answer: bytes) -> None:
        """Answer and end; what is still being sent is taken, so that the answer is not lost."""
        line.writer.write(answer)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_longest):
                await line.writer.drain()
                line.end()
                while await line.reader.read(_HEAD_BYTES_MAX):
                    pass

    async def _join(self, client: _Line, server: _Line) -> None:
        """Carry bytes both ways until both have ended, or nothing has moved for long."""
        loop, idle = asyncio.get_running_loop(), self._limits.idle_longest

        async def carry(giver: _Line, taker: _Line) -> None:
            with suppress(OSError):  # a closed socket ends both directions
                while data := await giver.reader.read(_HEAD_BYTES_MAX):
                    limit.reschedule(loop.time() + idle)
                    taker.writer.write(data)
                    await taker.writer.drain()
            taker.end()

        with suppress(TimeoutError):
            async with asyncio.timeout(idle) as limit, asyncio.TaskGroup() as ways:
                ways.create_task(carry(client, server))
                ways.create_task(carry(server, client))


@dataclass(frozen=True, slots=True)
class _No:
    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Line:
    """One connection, of which little is ever held in memory."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def over(cls, connected: socket.socket) -> _Line:
        return cls(*await asyncio.open_connection(sock=connected, limit=_HEAD_BYTES_MAX))

    @classmethod
    async def to(cls, address: Address, port: int) -> _Line:
        return cls(*await asyncio.open_connection(str(address), port, limit=_HEAD_BYTES_MAX))

    @property
    def is_to_itself(self) -> bool:
        """Whether both ends have the same address."""
        ours, theirs = (self.writer.get_extra_info(key) for key in ("sockname", "peername"))
        return bool(ours and theirs and ours[0] == theirs[0])

    def end(self) -> None:
        """Say that nothing more comes from us."""
        with suppress(OSError):
            if self.writer.can_write_eof():
                self.writer.write_eof()

    def close(self) -> None:
        self.writer.close()


async def _http(line: _Line, first: bytes) -> ProxyRequest | None:
    head = first + await line.reader.readuntil(HEAD_END)
    return read_http(head.removesuffix(HEAD_END))


async def _socks(line: _Line) -> ProxyRequest | None:
    """Greet, and read what is asked for; the version was read before."""
    count = (await line.reader.readexactly(1))[0]
    if _NO_PASSWORD not in await line.reader.readexactly(count):
        line.writer.write(SOCKS_UNFIT)
        return None
    line.writer.write(SOCKS_GREETING)
    data = b""
    while wanting := socks_wanting(data):
        data += await line.reader.readexactly(wanting)
    return read_socks(data)


def _socks_answer(status: int, _: str) -> bytes:
    return socks_answer(status)
