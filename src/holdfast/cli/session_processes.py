"""End every process that a session has started, whoever is there to see it."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.app.sessions import KeptSession
from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.exec_dial import server_of
from holdfast.cli.stop_note import last_note
from holdfast.exec import operating
from holdfast.failures import Failure
from holdfast.world import command_of, in_thread, sweep

_ANSWER_LONGEST: Final = 30.0  # seconds that the exec-server has to end its part


async def end_processes(session: KeptSession, settings: Settings) -> tuple[str, ...]:
    """End all that agents of a session have started; return the commands of what is left.

    First at the exec-server: it ends starts, too, that an earlier host asked for and that are still
    under way. Then by mark, for what a server that is gone has started.
    """
    server = server_of(Request(), settings)
    with suppress(Failure):  # there is no server, or one of an earlier version
        await (await server.dial()).aclose()
        async with operating(server.dial, answer_longest=_ANSWER_LONGEST) as operator:
            await operator.end(session.id)
    ended = await in_thread(partial(sweep, session.id))
    return tuple(f"{command_of(each.pid)} ({each.pid})" for each in ended.left)


def stopped_by(settings: Settings, since_ms: int) -> str:
    """Who has ended everything of this home at this time or later, if anybody has."""
    note = last_note(settings.state / "exec")
    return note.user if note is not None and note.at_ms >= since_ms else ""
