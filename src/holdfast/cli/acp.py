"""Be an agent for an editor, over standard input and output."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from functools import partial

import anyio

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.failures import EditorSupportMissing
from holdfast.cli.model import Outcome
from holdfast.cli.session_begin import begin_session
from holdfast.cli.session_start import start_host
from holdfast.host import Seat, seated
from holdfast.terminal.model import Opened


def acp(request: Request, settings: Settings) -> Outcome:
    """Answer an editor until it leaves."""
    try:
        from holdfast.terminal import serve_editor
    except ImportError as error:
        raise EditorSupportMissing from error
    anyio.run(serve_editor, _Stays(request, settings))
    return Outcome()


class _Stays:
    """The sessions of this user, for an editor."""

    def __init__(self, request: Request, settings: Settings) -> None:
        self._request, self._settings = request, settings
        self._sessions = Sessions(settings)

    def begin(self, project: str) -> Opened:
        """Begin a session about a project; nobody is there to be asked for consent."""
        given = (*self._request.given, ("--project", project))
        request = self._request._replace(given=given, is_json=True)
        return _opened(begin_session("", request, self._settings))

    def find(self, session: str) -> Opened:
        """The session of this id."""
        return _opened(self._sessions.find(session))

    def all(self) -> Sequence[Opened]:
        """Every session, the newest first."""
        return [_opened(each) for each in self._sessions.all()]

    def seat(self, session: str, *, after: int) -> AbstractAsyncContextManager[Seat]:
        """Sit at a session, from the record that follows `after` on."""
        kept = self._sessions.find(session)
        start = partial(start_host, kept, self._settings)
        return seated(self._sessions.socket(kept), start, after=after)

    def last(self, session: str) -> int:
        """The number of the last record that is written down of a session."""
        return self._sessions.last(self._sessions.find(session))


def _opened(session: KeptSession) -> Opened:
    at = datetime.fromtimestamp(session.at_ms / 1000, UTC).isoformat()
    return Opened(session.id, session.project, session.title, at)
