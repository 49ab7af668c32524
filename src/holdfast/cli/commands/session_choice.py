"""Let a person choose the session to go on with."""

from __future__ import annotations

import time
from collections.abc import Sequence

import anyio

from holdfast.app.failures import SessionAmbiguous, SessionMissing
from holdfast.app.sessions import KeptSession, Sessions, short
from holdfast.cli.commands.sessions import seen
from holdfast.cli.failures import UsageWrong
from holdfast.cli.render.sessions import sessions_page
from holdfast.cli.render.style import Look
from holdfast.cli.terminal import Terminal
from holdfast.nouns import printable

_MOST = 20  # sessions that are shown; an older one can be named all the same


def chosen(sessions: Sessions, about: Sequence[KeptSession], look: Look) -> KeptSession:
    """The session that a person names of those which they are shown, the newest first."""
    return anyio.run(_chosen, sessions, about, look)


async def _chosen(sessions: Sessions, about: Sequence[KeptSession], look: Look) -> KeptSession:
    terminal = Terminal()

    def meant(line: str) -> KeptSession | None:
        try:
            return sessions.find(line.strip()) if line.strip() else about[0]
        except (SessionMissing, SessionAmbiguous):
            return None

    if terminal.can_ask:
        page = sessions_page(await seen(sessions, about[:_MOST]), look, now=time.time())
        newest = printable(short(about[0]))
        prompt = f"Which one? Its name, or Enter for {newest}: "
        answer = await terminal.ask(page, prompt, meant, again="None is called that: ")
        if answer is not None:
            return answer
    problem = "no session was chosen: name one, as in holdfast --resume ID"
    raise UsageWrong(problem=problem, read_on="holdfast sessions list")
