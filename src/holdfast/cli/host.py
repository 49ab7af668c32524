"""Host a session in this process; started by others, through the plane, and not by people."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings, environment
from holdfast.cli.commands import Request
from holdfast.cli.draft_guest import guest_of
from holdfast.cli.exec_dial import server_of
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.session_consent import Agreed
from holdfast.exec import Client
from holdfast.host import DraftedWorkshop, HostOrder, run_host
from holdfast.runners import DEMO, CodexRunner, Rehearsal, Runner, Stage
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench, entering
from holdfast.world import WriterThread

RUNNERS = ("rehearsal", "codex", "native")


def host(request: Request, settings: Settings) -> Outcome:
    """Host a session until it is closed, or nobody wants anything of it."""
    if request.argument is None:
        raise UsageWrong(problem="say which SESSION", read_on="holdfast host --help")
    sessions = Sessions(settings)
    anyio.run(_host, sessions, sessions.find(request.argument), settings)
    return Outcome()


async def _host(sessions: Sessions, session: KeptSession, settings: Settings) -> None:
    order = HostOrder(
        session=session.id,
        directory=sessions.directory(session),
        socket=sessions.socket(session),
        project=session.project,
        draft=session.draft,
        runner=session.runner,
    )
    bench = Workbench.at(Path(session.project), settings.state)
    with WriterThread() as thread:
        workshop = DraftedWorkshop(bench, session.draft, thread, order.directory)
        await run_host(order, _runner(session, bench, settings), workshop)


@asynccontextmanager
async def _runner(
    session: KeptSession, bench: Workbench, settings: Settings
) -> AsyncGenerator[Runner]:
    """The runner of a session, with its processes in the draft's place."""
    server = server_of(Request(), settings)
    with entering(bench, session.draft) as entered:
        place, root = entered.view.place, str(entered.directory)
        if place is not None and place.holder is not None:
            server = await guest_of(server, Path(place.holder.directory))
    async with Client(server.dial_or_start) as client:
        yield _chosen(
            session, Stage(client, root, environment(), _scratch(), session.id), bench, settings
        )


def _scratch() -> str:
    """A directory for temporary files that is no parent of anybody's home."""
    return "/var/tmp" if os.path.isdir("/var/tmp") else "/tmp"


def _chosen(session: KeptSession, stage: Stage, bench: Workbench, settings: Settings) -> Runner:
    match session.runner:
        case "rehearsal":
            return Rehearsal(stage, Path(session.options.get("scenario", DEMO)))
        case "codex":
            codex = CodexRunner(stage, settings.codex, model=session.options.get("model"))
            return Agreed(codex, bench)
        case "native":
            from holdfast.cli.session_native import native_runner  # only who has it needs all of it

            return native_runner(session, stage, bench, settings)
        case other:
            raise RunnerUnknown(runner=other, known=", ".join(RUNNERS))
