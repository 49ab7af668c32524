"""Carry requests to providers over HTTP/1.1: connections are verified, kept, and few.

Nothing is sent twice: a kept connection that has ended is replaced before the first byte goes out.
If it ends later, before the answer has begun, nobody can tell whether the request was seen; that is
said, and it is for whoever asked to ask again, visibly.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import ExitStack
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel

from holdfast.agent.providers.http_connection_loop import HttpAnswer, HttpLine, dial, told, trusted
from holdfast.agent.providers.http_request import How, Lost, Place, Proxies, Proxy, Request
from holdfast.agent.providers.http_response import Malformed, write_head
from holdfast.world import in_thread

_KEPT_LONGEST: Final = 90.0  # seconds
_KEPT_MAX: Final = 8

_Spot = tuple[str, int, bool]


class HttpWeb:
    """Asks over connections that are kept a while."""

    def __init__(self, *, proxies: Proxies | None = None) -> None:
        self._proxies = proxies or Proxies()
        self._context: ssl.SSLContext | None = None
        self._kept: dict[_Spot, list[HttpLine]] = {}
        self._is_open = True

    async def ask(self, request: Request, *, connect: float, until: float) -> HttpAnswer | Lost:
        """The answer once its head is here; `connect` is how many seconds that alone may take."""
        place = request.place
        head = _head(request)
        if isinstance(head, Lost):
            return head
        line = self._take(place) or await self._connected(place, connect=connect, until=until)
        return line if isinstance(line, Lost) else await line.ask(head, request.body, until=until)

    async def close(self) -> None:
        """End the connections that are kept, and keep none from now on."""
        self._is_open = False
        kept, self._kept = self._kept, {}
        for line in (line for lines in kept.values() for line in lines):
            line.end()
        await anyio.lowlevel.cancel_shielded_checkpoint()  # in which the loop lets go of them

    def _take(self, place: Place) -> HttpLine | None:
        """The line that was kept last, if it is good for another request."""
        now = asyncio.get_running_loop().time()
        lines = self._kept.get(_spot(place), [])
        while lines:
            line = lines.pop()
            if line.is_alive and now - line.kept_at < _KEPT_LONGEST:
                return line
            line.end()
        return None

    def _keep(self, spot: _Spot, line: HttpLine) -> None:
        lines = self._kept.setdefault(spot, [])
        line.kept_at = asyncio.get_running_loop().time()
        lines.append(line)
        while len(lines) > (_KEPT_MAX if self._is_open else 0):
            lines.pop(0).end()

    async def _connected(self, place: Place, *, connect: float, until: float) -> HttpLine | Lost:
        """A new line, in the time that there is for it."""
        patience = anyio.current_time() + connect
        line: HttpLine | Lost | None = None
        with anyio.CancelScope(deadline=min(patience, until)):
            try:
                line = await self._dial(place, until=until)
            except ssl.SSLCertVerificationError as error:
                line = Lost(How.UNTRUSTED, told(error))
            except OSError as error:
                line = Lost(How.GONE, told(error))
            except UnicodeError:  # of a name that no resolver takes
                line = Lost(How.GONE, "its name is none")
        if line is None:
            return Lost(How.UNCONNECTED if patience < until else How.LATE)
        return line

    async def _dial(self, place: Place, *, until: float) -> HttpLine | Lost:
        loop = asyncio.get_running_loop()
        proxy = self._proxies.before(place)
        context = await self._verified() if place.is_secret else None
        if isinstance(context, Lost):
            return context
        near = await dial(*((proxy.host, proxy.port) if proxy else (place.host, place.port)))
        with ExitStack() as undone:
            undone.enter_context(near)
            _, line = await loop.create_connection(
                partial(HttpLine, partial(self._keep, _spot(place))),
                sock=near,
                ssl=None if proxy else context,
                server_hostname=None if proxy or context is None else place.host,
            )
            undone.pop_all()
        if proxy is None or context is None:
            return line
        refused = await _tunnel(line, place, proxy, until=until)
        if refused is not None:
            return refused
        secret = await loop.start_tls(line.transport, line, context, server_hostname=place.host)
        assert secret is not None, "the line was open"
        line.connection_made(secret)
        return line

    async def _verified(self) -> ssl.SSLContext | Lost:
        """Read in whom to trust, once, in a thread: that takes longer than a loop may block."""
        if self._context is None:
            found = await in_thread(_trusted)
            if isinstance(found, OSError):
                return Lost(How.UNTRUSTED, f"whom to trust cannot be read: {told(found)}")
            self._context = found
        return self._context


def _trusted() -> ssl.SSLContext | OSError:
    try:
        return trusted()
    except OSError as error:  # of a variable that leads nowhere, or a file that is damaged
        return error


async def _tunnel(line: HttpLine, place: Place, proxy: Proxy, *, until: float) -> Lost | None:
    """Have a proxy connect a line to a place; why it did not, if so."""
    head = write_head("CONNECT", place.authority, {"host": place.authority, **proxy.headers})
    answer = await line.ask(head, b"", until=until, is_tunnel=True)
    if isinstance(answer, Lost):
        return Lost(answer.how, f"the proxy: {answer.reason}")
    if answer.head.status >= 300:
        line.end()
        return Lost(How.GONE, f"the proxy refused it with status {answer.head.status}")
    return None


def _head(request: Request) -> bytes | Lost:
    named = {
        "host": request.place.name,
        **request.headers,
        "accept-encoding": "identity",  # events are small, and to unpack them takes longer
        "content-length": str(len(request.body)),
    }
    try:
        return write_head(request.method, request.place.target, named)
    except Malformed as error:
        return Lost(How.GONE, str(error))


def _spot(place: Place) -> _Spot:
    return place.host, place.port, place.is_secret
