"""Engage the runner of a session, with its processes in the draft's place."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast import runners
from holdfast.app.sessions import RUNNERS, KeptSession
from holdfast.app.settings import Settings, environment
from holdfast.cli.commands import Request
from holdfast.cli.draft_guest import guest_of
from holdfast.cli.exec_dial import server_of
from holdfast.cli.session_consent import Agreed
from holdfast.exec import Client
from holdfast.runners import Runner, Stage
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench, entering


@asynccontextmanager
async def engaged(session: KeptSession, settings: Settings) -> AsyncGenerator[Runner]:
    """The runner of a session, for the length of the block."""
    bench = Workbench.at(Path(session.project), settings.state)
    server = server_of(Request(), settings)
    with entering(bench, session.draft) as entered:
        place, root = entered.view.place, str(entered.directory)
        if place is not None and place.holder is not None:
            server = await guest_of(server, Path(place.holder.directory))
    async with Client(server.dial_or_start) as client:
        stage = Stage(client, root, environment(), _scratch(), session.id)
        yield _chosen(session, stage, bench, settings)


def _scratch() -> str:
    """A directory for temporary files that is no parent of anybody's home."""
    return "/var/tmp" if os.path.isdir("/var/tmp") else "/tmp"


def _chosen(session: KeptSession, stage: Stage, bench: Workbench, settings: Settings) -> Runner:
    """Only the one that is chosen is loaded."""
    match session.runner:
        case "rehearsal":
            script = session.options.get("scenario", runners.DEMO)
            return runners.Rehearsal(stage, Path(script))
        case "codex":
            model = session.options.get("model")
            return Agreed(runners.CodexRunner(stage, settings.codex, model=model), bench)
        case other:
            raise RunnerUnknown(runner=other, known=", ".join(RUNNERS))
