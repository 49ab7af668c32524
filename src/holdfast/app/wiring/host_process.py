"""Run the host of a session in this process.

The host listens before its runner is loaded, because loading an agent takes longer than
everything else at start-up.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.app.config import publishes_ignored
from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.app.wiring.host import end_processes, stopped_by
from holdfast.host import HostConfig, WorkbenchDraft, run_host
from holdfast.world import WriterThread

if TYPE_CHECKING:
    from holdfast.app.wiring.runner import RunnerFactory
    from holdfast.runners import Conversation, ReadMemory


async def host_session(session: KeptSession, settings: Settings) -> None:
    """Serve a session until it is closed or has been idle without clients."""
    sessions = Sessions(settings)
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
        await run_host(order, LazyRunner(session, settings), workshop)


class LazyRunner:
    """The runner of a session, loaded and connected at the first conversation."""

    def __init__(self, session: KeptSession, settings: Settings) -> None:
        self._session, self._settings = session, settings
        self._factory: RunnerFactory | None = None

    @property
    def name(self) -> str:
        """The value of `--runner`."""
        return self._session.runner

    @property
    def options(self) -> tuple[str, ...]:
        """The names of options that a turn can be given."""
        if self._session.runner != "native":
            return ()
        from holdfast.agent import OPTIONS

        return OPTIONS

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        """Begin or continue a conversation; a failure to load the runner fails the turn."""
        from holdfast.app.wiring.runner import RunnerFactory

        if self._factory is None:
            self._factory = RunnerFactory(self._session, self._settings)
        async with (
            self._factory.create() as runner,
            runner.converse(session, memory) as conversation,
        ):
            yield conversation
