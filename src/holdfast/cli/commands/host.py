"""Host a session in this process; started by others, through the plane, and not by people.

It answers before it has an agent: what a turn needs takes longer to load than all else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from holdfast.app.config import publishes_ignored
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.wiring.host import end_processes, stopped_by
from holdfast.host import HostConfig, WorkbenchDraft, run_host
from holdfast.world import WriterThread

if TYPE_CHECKING:
    from holdfast.cli.wiring.runner import Engagement
    from holdfast.runners import Conversation, ReadMemory


def host(request: Request, settings: Settings) -> Outcome:
    """Host a session until it is closed, or nobody wants anything of it."""
    if request.argument is None:
        raise UsageWrong(problem="say which SESSION", read_on="holdfast host --help")
    sessions = Sessions(settings)
    anyio.run(_host, sessions, sessions.find(request.argument), settings)
    return Outcome()


async def _host(sessions: Sessions, session: KeptSession, settings: Settings) -> None:
    order = HostConfig(
        session=session.id,
        directory=sessions.directory(session),
        socket=sessions.socket(session),
        project=session.project,
        draft=session.draft,
        runner=session.runner,
        end_earlier=partial(end_processes, session, settings),
        stopped_by=partial(stopped_by, settings),
    )
    with WriterThread() as thread:
        workshop = WorkbenchDraft(
            Path(session.project),
            settings.state,
            session.draft,
            thread,
            order.directory,
            with_ignored=partial(publishes_ignored, settings),
        )
        await run_host(order, OnDemand(session, settings), workshop)


class OnDemand:
    """The runner of a session, loaded and given its place when somebody talks to it."""

    def __init__(self, session: KeptSession, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._engagement: Engagement | None = None

    @property
    def name(self) -> str:
        """The word that a person chooses it by."""
        return self._session.runner

    @property
    def options(self) -> tuple[str, ...]:
        """How it can be told to take a turn."""
        if self._session.runner != "native":
            return ()
        from holdfast.agent import OPTIONS

        return OPTIONS

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        """Begin a conversation, or continue one; what keeps us from that is the turn's failure."""
        from holdfast.cli.wiring.runner import Engagement

        if self._engagement is None:
            self._engagement = Engagement(self._session, self._settings)
        async with (
            self._engagement.engaged() as runner,
            runner.converse(session, memory) as conversation,
        ):
            yield conversation
