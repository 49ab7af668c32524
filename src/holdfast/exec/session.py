"""The introduction to a server: which session we have there, and what the server can do."""

from __future__ import annotations

from holdfast.exec.core.answers import refused
from holdfast.exec.core.versions import OURS, agree, from_our_side
from holdfast.exec.wire import Capabilities, EnvironmentInfo, InitializeParams, InitializeResult
from holdfast.rpc import Connection
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse, VersionRefused

_INITIALIZE = "initialize"


class Session:
    """What we have at one server, learned at the first introduction and wanted back at all others.

    A session is never exchanged for another one: what ran in it would be forgotten silently.
    """

    def __init__(self, client_name: str, *, unread_bytes_max: int, label: str = "") -> None:
        self._client_name, self._unread_bytes_max = client_name, unread_bytes_max
        self._label = label
        self.id: str | None = None
        self.version: int | None = None  # of the wire; None with a server of Codex
        self.untaken_bytes_max: int | None = None  # what is told before we must say what we took
        self.environment: EnvironmentInfo | None = None
        self.capabilities = Capabilities()

    async def introduce(self, connection: Connection, *, timeout: float) -> None:
        """Begin the session on a new connection, or take it up again there."""
        params = InitializeParams(
            self._client_name, self.id, self._unread_bytes_max, OURS, self._label
        )
        try:
            welcome = await connection.request(
                _INITIALIZE, params, timeout=timeout, result=InitializeResult
            )
        except ErrorResponse as error:
            raise refused(error, subject=self.id or "") from error
        except VersionRefused as error:
            raise from_our_side(error) from error
        self.version = agree(welcome.versions)
        if self.id not in {None, welcome.session_id}:
            reason = f"asked for session {self.id}, it gave {welcome.session_id}"
            raise AnswerInvalid(method=_INITIALIZE, reason=reason)
        self.id = welcome.session_id
        self.untaken_bytes_max = welcome.unread_bytes_max
        self.environment = welcome.environment_info or self.environment
        if self.environment is not None:
            self.capabilities = self.environment.capabilities
        await connection.notify("initialized", {})
