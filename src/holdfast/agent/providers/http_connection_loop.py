"""One connection to a provider, over which requests go one after the other.

Callbacks of the loop read; whoever waits is woken once for all that has come. A timer stands in for
a scope at each wait: that is a tenth of the time, and a step waits several times.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
import ssl
from collections.abc import Callable
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Final, cast

import anyio

from holdfast.agent.providers.http_request import How, Lost
from holdfast.agent.providers.http_response import AnswerReader, Head

# Connect to a host: by whichever of its addresses answers first, and only if it is trusted.

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


_READ_BYTES: Final = 64 * 1024
_WRITE_BYTES: Final = 256 * 1024  # at once: what the kernel does not take of it is copied
_UNREAD_BYTES_MAX: Final = 2**20


class HttpLine(asyncio.BufferedProtocol):
    """A connection that carries one exchange at a time; `let_go` is told when it is free again."""

    transport: asyncio.Transport  # from the moment that it is connected

    def __init__(self, let_go: Callable[[HttpLine], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._let_go = let_go
        self._buffer = memoryview(bytearray(_READ_BYTES))  # slices of it are no copies of it
        self._reader: AnswerReader | None = None  # while a request is on its way
        self._unread: list[bytes] = []
        self._unread_bytes = 0
        self._news: asyncio.Future[bool] | None = None
        self._is_full = False  # then what we write must wait
        self._is_whole = True  # all of the request went out
        self._lost = ""
        self.kept_at = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether a request may still go out; what the loop has not been told yet counts too."""
        if self._lost or self.transport.is_closing():
            return False
        waiting = select.poll()
        waiting.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)  # nobody speaks without being asked: it is the end, or nonsense

    async def ask(
        self, head: bytes, body: bytes, *, until: float, is_tunnel: bool = False
    ) -> HttpAnswer | Lost:
        """Send a request, and wait for the head of its answer; if none comes, it is the end."""
        assert self._reader is None, "one exchange at a time"
        self._reader = reader = AnswerReader(is_tunnel=is_tunnel)
        found: Head | None = None
        try:
            is_late = not await self._write(head, body, until)
            while not (is_late or reader.head or reader.problem or self._lost):
                is_late = not await self._wait(until)
            found = reader.head
        finally:
            if found is None:
                self.end()
        if is_tunnel:
            self._reader = None  # from now on it is a line to somebody else
        if found is not None:
            return HttpAnswer(self, found)
        return Lost(How.LATE) if is_late else Lost(How.GONE, reader.problem or self._lost)

    async def read(self, *, until: float) -> bytes | Lost:
        """All bytes of the answer's body that have come; none at its end."""
        reader = self._reader
        assert reader is not None, "nothing was asked"
        while not self._unread:
            if reader.is_over:
                return b""
            if reader.problem or self._lost:
                return Lost(How.GONE, reader.problem or self._lost)
            if not await self._wait(until):
                return Lost(How.LATE)
        came, self._unread = self._unread, []
        if self._unread_bytes > _UNREAD_BYTES_MAX and not self.transport.is_closing():
            self.transport.resume_reading()
        self._unread_bytes = 0
        return came[0] if len(came) == 1 else b"".join(came)

    def release(self) -> None:
        """Be free for another request if the answer is over, else end the connection at once."""
        reader, self._reader = self._reader, None
        is_free = reader is not None and reader.is_keepable and self._is_whole
        if is_free and not (self._unread or self._lost):
            self._let_go(self)
        else:
            self.end()

    def end(self) -> None:
        """End the connection at once."""
        self._reader = None
        self._lost = self._lost or "we hung up"
        self.transport.abort()

    async def _write(self, head: bytes, body: bytes, until: float) -> bool:
        """Write until it is all out or an answer has come; False if that takes too long."""
        first = _READ_BYTES - len(head)
        self.transport.write(head + body[:first])
        rest = memoryview(body)[first:]
        while rest:
            assert self._reader is not None
            if self._reader.head or self._reader.problem or self._lost:
                self._is_whole = False
                break
            if not self._is_full:
                self.transport.write(rest[:_WRITE_BYTES])
                rest = rest[_WRITE_BYTES:]
            elif not await self._wait(until):
                return False
        return True

    async def _wait(self, until: float) -> bool:
        """Wait until something has happened, whatever it was; False if nothing has in time."""
        news: asyncio.Future[bool] = self._loop.create_future()
        self._news = news
        timer = self._loop.call_at(until, _settle, news)
        try:
            return await news
        finally:
            timer.cancel()
            self._news = None

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(True)

    # What the loop tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a transport; also the encrypted one, once a tunnel has been made."""
        self.transport = cast("asyncio.Transport", transport)  # a stream's always is one

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where to put what comes: made once, since answers come in many small reads.

        What decrypts fills it piece by piece, each into a slice, which must be a part of it. What
        it has no room for there is lost if the other side has hung up: then there must be more.
        """
        if sizehint > len(self._buffer):
            self._buffer = memoryview(bytearray(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what has come."""
        if self._reader is None:
            self.end()  # nothing was asked
            return
        came = self._reader.feed(bytes(self._buffer[:nbytes]))
        if came:
            self._unread.append(came)
            before, self._unread_bytes = self._unread_bytes, self._unread_bytes + len(came)
            if before <= _UNREAD_BYTES_MAX < self._unread_bytes:
                self.transport.pause_reading()
        self._tell()

    def eof_received(self) -> None:
        """Take note that nothing more comes."""
        if self._reader is not None:
            self._reader.end()
        self._lost = self._lost or "it hung up"
        self._tell()

    def connection_lost(self, exc: Exception | None) -> None:
        """Take note that the connection has ended, and why."""
        reason = "it hung up" if exc is None else told(exc)
        self._lost = self._lost or reason
        if self._reader is not None and exc is None:
            self._reader.end()
        self._tell()

    def pause_writing(self) -> None:
        """Write no more for now."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Write on."""
        self._is_full = False
        self._tell()


class HttpAnswer:
    """An answer that has begun, on the line that it comes on."""

    def __init__(self, line: HttpLine, head: Head) -> None:
        self._line: HttpLine | None = line
        self.head = head

    async def read(self, *, until: float) -> bytes | Lost:
        """The next bytes of the body as they come; none at its end."""
        assert self._line is not None, "it was closed"
        return await self._line.read(until=until)

    def close(self) -> None:
        """Let go of the line, which is kept if the answer is over; may be called again."""
        line, self._line = self._line, None
        if line is not None:
            line.release()


def _settle(news: asyncio.Future[bool]) -> None:
    if not news.done():
        news.set_result(False)
