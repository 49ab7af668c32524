"""Run a command on a server and be at it, or be at one again that was left."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import signal
import sys
import time

import anyio

from holdfast.app.settings import Settings, environment
from holdfast.cli.codex_order import directory
from holdfast.cli.commands import Request
from holdfast.cli.core.process_name import process_name
from holdfast.cli.core.start_status import start_status
from holdfast.cli.exec_dial import Server, server_of
from holdfast.cli.exec_lookup import looked_up, reached, unnamed
from holdfast.cli.exec_visit import Visit, window_size
from holdfast.cli.failures import (
    LocalServerStopped,
    OutputLost,
    ProcessAttached,
    UsageWrong,
)
from holdfast.cli.model import Outcome
from holdfast.cli.output import is_terminal
from holdfast.cli.terminal import has_input
from holdfast.exec import Client, Process, operating
from holdfast.exec.failures import StartFailed
from holdfast.exec.model import Command
from holdfast.failures import Failure, boundary
from holdfast.nouns import printable
from holdfast.rpc import Transport

_MARK_BYTES = 3
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ABROAD = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "TERM", "TZ")


def run_there(request: Request, settings: Settings) -> Outcome:
    """Run a command, and end as it ends."""
    stay = Stay(request, server_of(request, settings))
    is_local, cwd = stay.server.state is not None, request.value("--cwd")
    if is_local or cwd is None:
        cwd = directory(request) or os.getcwd()
    return anyio.run(stay.run, command_in(cwd, request, is_local=is_local))


def attach(request: Request, settings: Settings) -> Outcome:
    """Be at a process that was left, and end as it ends."""
    if request.argument is None:
        raise unnamed(request)
    return anyio.run(Stay(request, server_of(request, settings)).attach)


class Stay:
    """One stay at one process of one server, and the word about how it ended."""

    def __init__(self, request: Request, server: Server) -> None:
        self.server = server
        self._request = request
        self._first: Transport | None = None

    async def run(self, command: Command) -> Outcome:
        """Start a command and stay until it has ended."""
        self._first = await self.server.dial_or_start()  # fails at once where nobody is
        name = await self._named(command)
        async with Client(self._dial) as client:
            try:
                process = await client.start(command, process_id=name, continue_if_started=True)
            except StartFailed as failure:
                return Outcome(status=start_status(failure.reason), failure=failure)
            if self._request.has("--detach"):
                return Outcome(answer=f"{printable(process.id)}\n", hint=self.hint(process))
            return await self._visit(process, client)

    async def _named(self, command: Command) -> str:
        """The name of a new process: one that is given must be free as long as another runs."""
        given = self._request.value("--name")
        if given is None:
            return process_name(command.argv[0], secrets.token_hex(_MARK_BYTES))
        if not _NAME.fullmatch(given):
            problem = f"--name {given}: use letters, digits, '.', '_' and '-', at most 64"
            raise UsageWrong(problem=problem, read_on="holdfast exec --help")
        async with operating(self.server.dial) as operator:
            running = [each.process for each in await operator.processes()]
        if any(each.process_id == given and each.exit_code is None for each in running):
            problem = f"--name {given}: a process of this name runs already"
            raise UsageWrong(problem=problem, read_on="holdfast ps")
        return given

    async def attach(self) -> Outcome:
        """Take up a process where what is kept of it begins, and stay until it has ended."""
        self._first = await reached(self._request, self.server)
        async with operating(self._dial) as operator:
            found = await looked_up(self._request, operator)
            page = await operator.read(found, after=0, wait=0)
        if found.attached:
            raise ProcessAttached(process=found.process.process_id)
        after = max(page.first_retained - 1, 0)
        async with Client(self._dial).resume(found.session_id) as client:
            return await self._visit(await client.follow(found.process, after=after), client)

    async def _visit(self, process: Process, client: Client) -> Outcome:
        visit = Visit(process, client, as_records=self._request.is_json)
        failure: Failure | None = None
        try:
            with boundary("exec.visit"):
                await visit.run()
        except Failure as raised:
            failure = raised
        if visit.left_by is not None:
            # The terminal has shown ^C, or what the command wrote: it is in the middle of a line.
            is_shown = visit.left_by == signal.SIGINT or process.command.tty
            is_amid = is_shown and is_terminal(sys.stderr)
            hint = f"\n{self.hint(process)}" if is_amid else self.hint(process)
            return Outcome(status=128 + visit.left_by, hint=hint)
        if isinstance(failure, OutputLost) and isinstance(failure.__cause__, BrokenPipeError):
            return Outcome(failure=failure)
        if failure is not None:
            hint = "" if isinstance(failure, LocalServerStopped) else self.hint(process)
            return Outcome(failure=failure.stamped(time.time()), hint=hint)
        assert visit.status is not None, "what is closed has exited"
        return Outcome(status=visit.status)

    def hint(self, process: Process) -> str:
        """How to come back to a process that was left running."""
        words = ["holdfast", "attach"]
        for flag in ("--server", "--token-file"):
            if (value := self._request.value(flag)) is not None:
                words += [flag, value]
        line = printable(shlex.join([*words, process.id]))
        return f"It runs on. Attach again: {line}"

    async def _dial(self) -> Transport:
        first, self._first = self._first, None
        return first or await self.server.dial_or_start()


def command_in(cwd: str, request: Request, *, is_local: bool) -> Command:
    """What is to be run there, with our environment and a terminal like ours."""
    read_on = f"holdfast {request.command} --help"
    if not request.words:
        problem = f"say what to run, as in: holdfast {request.command} -- make"
        raise UsageWrong(problem=problem, read_on=read_on)
    for word in request.words:
        if not _is_text(word):
            problem = f"{word!r} is not UTF-8 text, which is all that can be sent; use a script"
            raise UsageWrong(problem=problem, read_on=read_on)
    env = {name: value for name, value in environment().items() if _is_text(name + value)}
    if not is_local:
        env = {name: env[name] for name in _ABROAD if name in env}
    rows, cols = window_size() or (24, 80)
    return Command(
        request.words,
        cwd=cwd,
        env=env,
        tty=request.has("--tty"),
        has_stdin=has_input() and not request.has("--detach"),
        rows=rows,
        cols=cols,
    )


def _is_text(word: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in word)
