"""State of one connection that its methods share: its handshake, session and output sender."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from holdfast.exec.failures import NotIntroduced, RequestInvalid
from holdfast.exec.protocol import OURS, EnvironmentInfo, InitializeParams, InitializeResult, agree
from holdfast.exec.server.output_sender import OutputSender
from holdfast.exec.server.places import PLAIN
from holdfast.exec.server.process import ServerProcess
from holdfast.exec.server.sessions import ExecSession, SessionRegistry
from holdfast.rpc import Handler
from holdfast.rpc.failures import HandshakeRepeated

Params = TypeVar("Params")
Handlers = dict[str, Handler[Any]]  # each method has params of its own


class ConnectionContext:
    """Handshake state and session of one connection."""

    def __init__(
        self,
        number: int,
        sessions: SessionRegistry,
        sender: OutputSender,
        info: EnvironmentInfo,
        place: str = PLAIN,
    ) -> None:
        self.number = number
        self.place = place
        self.sender = sender
        self.is_introduced = False
        self.evicted = anyio.Event()
        self._sessions, self._info = sessions, info
        self._session: ExecSession | None = None
        self._asking = 0
        self._asked = anyio.Event()
        sessions.register(self)

    async def initialize(self, asked: InitializeParams) -> InitializeResult:
        """Give the connection a new session, or resume one.

        Only one call may succeed; a failed one may be retried.
        """
        if self._session is not None or self._asking:
            raise HandshakeRepeated
        versions = None if agree(asked.versions) is None else OURS
        self.sender.unread_bytes_max = self._unread_bytes_max(asked)
        self._asking, self._asked = 1, anyio.Event()
        try:
            if asked.resume_session_id is None:
                self._session = await self._sessions.begin(self, self.place, label=asked.label)
            else:
                name = asked.resume_session_id
                self._session = self._sessions.resume(name, self, self.place)
                for process in self._session.processes:
                    self.sender.resume(process)
        finally:
            self._asking = 0
            self._asked.set()
        unread = self.sender.unread_bytes_max
        return InitializeResult(self._session.id, self._info, unread, versions)

    async def session(self, family: str) -> ExecSession:
        """Return the session of this connection; raises if it was taken over or there is none."""
        if self._asking:
            await self._asked.wait()
        if self._session is None:
            raise NotIntroduced(method=family, step="call initialize")
        if not self.is_introduced:
            raise NotIntroduced(method=family, step="send initialized")
        self._session.check(self)
        return self._session

    def _unread_bytes_max(self, asked: InitializeParams) -> int | None:
        """Return the client's buffer size, capped to what is certainly retained."""
        if asked.unread_bytes_max is None:
            return None
        if asked.unread_bytes_max < 1:
            raise RequestInvalid(reason="unreadBytesMax must be positive")
        return min(asked.unread_bytes_max, self._sessions.untaken_bytes_max)

    def evict(self) -> None:
        """Lose the session to another connection, at once."""
        self.sender.stop()
        self.evicted.set()

    def process_started(self, process: ServerProcess) -> None:
        """Send the events of a new process, from the first one on."""
        self.sender.begin(process)

    def tick(self, now: float) -> None:
        """Run periodic work."""
        self.sender.catch_up_late(now)

    def leave(self) -> None:
        """Detach the session: the connection has ended."""
        self.sender.stop()
        self._sessions.leave(self._session, self)


def nothing(params: dict[str, object] | None) -> None:
    """Reject parameters of a method that has none."""
    if params:
        raise RequestInvalid(reason="invalid type: map, expected unit")


def plain(call: Callable[[], Awaitable[object]]) -> Handler[dict[str, object] | None]:
    """Return the handler of a method without parameters."""

    async def answer(params: dict[str, object] | None) -> object:
        nothing(params)
        return await call()

    return Handler(dict[str, object] | None, answer)  # type: ignore[arg-type]  # a union is a type to msgspec
