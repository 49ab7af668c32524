"""`holdfast chat`: talk with an agent in a terminal, in a new or a resumed session.

Imports that the input line does not need happen later: the user waits for that line.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from holdfast.app.sessions import RUNNERS, KeptSession, Sessions, runnable, short
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.local_server import ExecEndpoint, local_endpoint
from holdfast.cli.commands.agent_choice import not_chosen, with_agent
from holdfast.cli.declarations import ALONE, CHOOSE, Request
from holdfast.cli.failures import AgentNotChosen, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.options import chosen_for, configured
from holdfast.cli.output import DUMB, complain, is_terminal, look_for, write
from holdfast.cli.render.errors import error_page
from holdfast.failures import Failure, boundary
from holdfast.host import WaitEnded, supervise_host
from holdfast.nouns import printable
from holdfast.terminal import Setting, Talk, guarded
from holdfast.terminal.model import Block, Style

_LIGHT: Final = ("7", "15")  # light background colours in COLORFGBG


def chat(request: Request, settings: Settings) -> Outcome:
    """Run the terminal until the user leaves, and print how to resume."""
    is_seen = is_terminal(sys.stdin) and is_terminal(sys.stdout)
    request = configured(request, settings)
    is_plain = request.has("--plain") or not is_seen or environment().get("TERM") in DUMB
    try:
        request = with_agent(request, settings, can_ask=not request.has(ALONE))
    except AgentNotChosen as failure:
        return not_chosen(failure, look_for(sys.stderr, request, settings))
    if request.has(ALONE):
        from holdfast.cli.parser import parse

        help_page = parse([])
        return Outcome(answer=help_page.page or "" if isinstance(help_page, Request) else "")
    session = _session(request, settings, asks_later=not is_plain)
    if is_plain:
        from holdfast.cli.commands.attach import Stay

        look = look_for(sys.stdout, request, settings)
        if request.colour != "always":
            look = replace(look, is_coloured=False)
        stay = Stay(session, settings, look, prompt=request.argument)
        anyio.run(stay.run)
        return stay.outcome()
    if not request.has("--continue") and not request.has("--resume"):
        write(_hello(session))
    status = guarded(partial(_talk, session, request, settings))
    name = printable(short(session))
    return Outcome(status=status, hint=f"Resume with: holdfast --resume {name}")


def _hello(session: KeptSession) -> str:
    """The greeting of a new session: project and runner."""
    where = printable(Path(session.project).name)
    line = f"holdfast in {where}, with {session.runner}: files change only when you /publish."
    return textwrap.fill(line, shutil.get_terminal_size().columns - 1) + "\n"


def _session(request: Request, settings: Settings, *, asks_later: bool) -> KeptSession:
    sessions = Sessions(settings)
    if request.has("--continue") or request.has("--resume"):
        kept = _meant(sessions, request, settings)
        is_asked = not asks_later or request.has("--consent")
        if (
            kept.runner == RUNNERS[0] or not is_asked
        ):  # the rehearsal sends nothing over the network
            return runnable(kept)
        from holdfast.cli.commands.session_start import resumed_session

        return resumed_session(kept, request, settings)
    from holdfast.cli.commands.session_start import new_session

    return new_session(request.argument or "", request, settings, asks_later=asks_later)


def _meant(sessions: Sessions, request: Request, settings: Settings) -> KeptSession:
    """The named or chosen session, or the newest about this directory.

    With nested projects the newest session of the innermost one.
    """
    named = request.value("--resume")
    if named and named != CHOOSE:
        return sessions.find(named)
    here = Path(request.value("--project") or ".").resolve()
    about = [each for each in sessions.all() if here.is_relative_to(each.project)]
    if not about:
        problem = "this directory has no session to resume"
        raise UsageWrong(problem=problem, read_on="holdfast --help")
    if named:
        from holdfast.cli.commands.session_choice import chosen

        return chosen(sessions, about, look_for(sys.stderr, request, settings))
    return max(about, key=lambda each: len(each.project))  # the first, so the newest, of equals


def _talk(session: KeptSession, request: Request, settings: Settings) -> int:
    try:
        with boundary("chat"):
            anyio.run(_stay, session, request, settings)
    except Failure as failure:
        complain(error_page(failure, look_for(sys.stderr, request, settings), is_verbose=False))
        return failure.kind.exit_status
    return 0


async def _stay(session: KeptSession, request: Request, settings: Settings) -> None:
    sessions = Sessions(settings)
    setting = Setting(
        draft=session.draft,
        runner=session.runner,
        root=Path(session.project),
        history=settings.state / "history",
        draw=_draw,
        options=lambda: _options(session, settings),
        how=chosen_for(request) if session.runner == "native" else {},
        is_coloured=look_for(sys.stdout, request, settings).is_coloured,
        notify=tuple((request.value("notify") or "").split(",")),
        notify_command=tuple(shlex.split(request.value("notify_command") or "")),
        is_light=environment().get("COLORFGBG", "").rpartition(";")[2] in _LIGHT,
    )
    start = partial(_start, session, local_endpoint(settings))
    async with supervise_host(sessions.socket(session), start) as seat:
        talk = Talk(seat, setting, _Ours(session), sessions.last(session))
        await talk.run(request.argument)


async def _start(session: KeptSession, server: ExecEndpoint) -> WaitEnded:
    """Start the host; imported here, since a host that runs already needs none of it."""
    from holdfast.app.wiring.host import HostStarter

    return await HostStarter(session, server)()


def _draw(blocks: Sequence[Block], style: Style, *, after: Block | None, is_whole: bool) -> str:
    """Render finished blocks; imported here, since the Markdown renderer loads slowly."""
    from holdfast.terminal import draw

    return draw(blocks, style, after=after, is_whole=is_whole)


def _options(session: KeptSession, settings: Settings) -> Sequence[str]:
    """The options that a turn takes; imported here, since it loads the agent."""
    from holdfast.app.wiring.host_process import LazyRunner

    return LazyRunner(session, settings).options


class _Ours:
    """Runs holdfast commands in the project of a session."""

    def __init__(self, session: KeptSession) -> None:
        self._session = session

    def run(self, argv: Sequence[str]) -> int:
        """Run a command in the foreground and return its exit status."""
        words = (sys.executable, "-P", "-m", "holdfast.cli.main", *argv)
        return subprocess.run(words, cwd=self._session.project, check=False).returncode
