"""`holdfast fork`: continue a conversation in a second session with its own draft."""

from __future__ import annotations

from functools import partial

import anyio

from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.app.settings import Settings
from holdfast.app.wiring.fork import ForkSource, fork_session, fork_source
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line
from holdfast.cli.project import at_work
from holdfast.nouns import printable
from holdfast.world import in_thread


def fork(request: Request, settings: Settings) -> Outcome:
    """Fork the named session, or the newest."""
    session = Sessions(settings).find(request.argument)
    made = _fork(session, settings, anyio.run(fork_source, session, settings))
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": made.id, "draft": made.draft}
        return Outcome(answer=json_line({**record, "of": session.id}))
    name = printable(short(made))
    return Outcome(answer=f"{made.id}\n", hint=f"Resume with: holdfast --resume {name}")


async def fork_in_thread(session: KeptSession, settings: Settings) -> KeptSession:
    """Fork a session without blocking the event loop while a large draft is copied."""
    source = await fork_source(session, settings)
    return await in_thread(partial(_fork, session, settings, source))


def _fork(session: KeptSession, settings: Settings, source: ForkSource) -> KeptSession:
    with at_work(Request("fork", given=(("--project", session.project),)), settings) as project:
        return fork_session(session, source, project.workbench, settings)
