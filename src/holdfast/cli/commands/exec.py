"""Run a command on a server and be at it, or be at one again that was left."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shlex
import signal
import sys
import termios
import time
import tty
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from holdfast.app.failures import LocalServerStopped
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.local_server import ExecEndpoint, local_endpoint, remote_endpoint
from holdfast.cli.commands.codex_input import directory
from holdfast.cli.commands.escape_keys import Escape
from holdfast.cli.declarations import Request
from holdfast.cli.failures import OutputLost, ProcessAttached, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import abandon, complain, is_terminal, json_line
from holdfast.cli.render.processes import meant, output_line, process_name
from holdfast.cli.terminal import has_input, read_input, write_all
from holdfast.exec import Client, Operator, Process, operating
from holdfast.exec.failures import ProcessUnknown, StartFailed
from holdfast.exec.model import ClientState, Command, Exited, Output
from holdfast.exec.protocol import OperatorProcess, OutputStream
from holdfast.failures import Failure, boundary, ungrouped
from holdfast.nouns import printable
from holdfast.rpc import Transport
from holdfast.rpc.failures import SocketRefused

# Be at a process as if it ran here: its output, its input, its signals and its window.

_IN, _OUT, _ERR = 0, 1, 2
_OUTAGE_UNTOLD = 2.0  # seconds: most are over by then
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_TELLING = (signal.SIGUSR1, signal.SIGUSR2)
_SIGNALS = (*_ENDING, *_TELLING, signal.SIGHUP, signal.SIGWINCH)


class Visit:
    """One stay at a process, until that ends or we leave; what is not ours to decide is raised."""

    def __init__(self, process: Process, client: Client, *, as_records: bool = False) -> None:
        """Be at a process; `as_records` writes both streams to ours as objects for a program."""
        self.status: int | None = None
        self.left_by: int | None = None  # the signal that made us leave it running
        self._process, self._client = process, client
        self._as_records = as_records
        self._is_warned = self._is_raw = False
        self._tasks: TaskGroup

    async def run(self) -> None:
        """Stay; the terminal is as it was afterwards, whatever happens."""
        with (
            ungrouped(),
            raw_keys(wanted=self._process.command.tty) as is_raw,
            anyio.open_signal_receiver(*_SIGNALS) as signals,
        ):
            self._is_raw = is_raw
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._heed, signals)
                self._tasks.start_soon(self._resize)
                if is_terminal(sys.stderr):
                    self._tasks.start_soon(self._tell_of_outages)
                if self._process.command.has_stdin:
                    self._tasks.start_soon(self._feed, Escape() if is_raw else None)
                await self._show()
                self._tasks.cancel_scope.cancel()

    async def _show(self) -> None:
        """Write all that it writes, each stream where it belongs."""
        async for event in self._process.events():
            match event:
                case Output() if self._as_records:
                    await self._put(_OUT, json_line(output_line(event)).encode())
                case Output(stream=stream, data=data):
                    await self._put(_ERR if stream == OutputStream.STDERR else _OUT, data)
                case Exited(status=status):
                    self.status = status
                case _:
                    pass

    async def _put(self, descriptor: int, data: bytes) -> None:
        try:
            await write_all(descriptor, data)
        except OSError as error:
            if descriptor == _ERR:
                abandon(_ERR)  # standard error has no reader any more
                return
            abandon(_OUT)
            if error.errno == errno.EPIPE:  # as it would go for a child of the same shell
                with suppress(Failure):
                    await self._signal("PIPE")
            raise OutputLost(reason=error.strerror or str(error)) from error

    async def _feed(self, escape: Escape | None) -> None:
        """Forward our input up to its end; a process that does not read it is not a failure."""
        with suppress(Failure):
            while data := await read_input():
                if escape is not None:
                    data = escape.pass_on(data)
                if data:
                    await self._process.write(data)
                if escape is not None and escape.has_left:
                    self._leave(signal.SIGHUP)
                    return
            if self._process.can_close_stdin:
                await self._process.close_stdin()

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Hand signals on; a second one of those that end, or a hangup, leaves."""
        async for number in signals:
            if number == signal.SIGWINCH:
                self._tasks.start_soon(self._resize)
            elif number in _TELLING:
                if self._process.can_be_killed:  # else it could only be ended
                    self._tasks.start_soon(self._pass_signal, number.name.removeprefix("SIG"))
            elif self._is_warned or number == signal.SIGHUP:
                self._leave(number)
            else:
                self._is_warned = True
                name = "interrupt" if number == signal.SIGINT else number.name.removeprefix("SIG")
                self._tasks.start_soon(self._pass_signal, name)

    async def _pass_signal(self, name: str) -> None:
        with suppress(Failure):  # whatever it says, the next one leaves
            await self._signal(name)

    async def _signal(self, name: str) -> None:
        """Send a signal; a server that knows but interrupts kills instead."""
        if name == "interrupt" or self._process.can_be_killed:
            await self._process.signal(name)
        else:
            await self._process.terminate()

    async def _tell_of_outages(self) -> None:
        """Tell a person what they wait for, if they have waited for a while."""
        while True:
            await self._client.wait_state(ClientState.RECOVERING)
            with anyio.move_on_after(_OUTAGE_UNTOLD):
                await self._client.wait_state(ClientState.CONNECTED)
                continue
            self._note("The server does not answer; trying again. Ctrl-C twice leaves.")
            await self._client.wait_state(ClientState.CONNECTED)
            self._note("The server answers again.")

    def _note(self, text: str) -> None:
        """Say something between the lines of the process, also while the terminal is raw."""
        complain(f"\r\n({text})\r\n" if self._is_raw else f"({text})\n")

    async def _resize(self) -> None:
        """Give its terminal the size of ours, if both are there."""
        if not self._process.command.tty:
            return
        if (size := window_size()) is not None:
            with suppress(Failure):
                await self._process.resize(rows=size[0], cols=size[1])

    def _leave(self, number: int) -> None:
        self.left_by = number
        self._tasks.cancel_scope.cancel()


@contextmanager
def raw_keys(*, wanted: bool) -> Generator[bool]:
    """Let every key through as it is, where there are keys; say whether there are."""
    if not wanted or not has_input() or not os.isatty(_IN):
        yield False
        return
    before = termios.tcgetattr(_IN)
    try:
        tty.setraw(_IN, termios.TCSADRAIN)
        yield True
    finally:
        termios.tcsetattr(_IN, termios.TCSANOW, before)


def window_size() -> tuple[int, int] | None:
    """The rows and columns of our terminal, if there is one."""
    for descriptor in (_IN, _OUT, _ERR):
        with suppress(OSError):
            size = os.get_terminal_size(descriptor)
            return (size.lines, size.columns) if size.lines and size.columns else None
    return None


# Find the process that a person named.


def unnamed(request: Request) -> UsageWrong:
    """What is wrong where no process was named."""
    problem = "say which PROCESS; holdfast ps lists them"
    return UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")


async def reached(request: Request, server: ExecEndpoint) -> Transport:
    """Open a connection to look up a process; raises ProcessUnknown if no local server runs."""
    try:
        return await server.dial_kept()
    except SocketRefused as refused:
        if server.state is None or request.argument is None:
            raise
        raise ProcessUnknown(process=request.argument) from refused


async def looked_up(request: Request, operator: Operator) -> OperatorProcess:
    """The one process that is meant; none and many are failures that say so."""
    word = request.argument
    if not word:
        raise unnamed(request)
    known = {
        (each.session_id, each.process.process_id): each for each in await operator.processes()
    }
    found = meant(word, known)
    if not found:
        raise ProcessUnknown(process=word)
    if len(found) > 1:
        names = ", ".join(f"{session}/{name}" for session, name in found)
        problem = f"{word} may be any of {names}"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    return known[found[0]]


# Decide with which status to end when a command did not start, as shells do.

NOT_FOUND, NOT_EXECUTABLE = 127, 126

_STATUSES = {
    "no such file or directory": NOT_FOUND,
    "permission denied": NOT_EXECUTABLE,
    "exec format error": NOT_EXECUTABLE,
    "is a directory": NOT_EXECUTABLE,
}


def start_status(reason: str) -> int:
    """127 if the command was not found, 126 if it cannot be executed, otherwise 1."""
    said = reason.lower().partition(" (os error")[0]
    return _STATUSES.get(said, 1)


_MARK_BYTES = 3
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ABROAD = ("PATH", "HOME", "USER", "SHELL", "LANG", "LC_ALL", "TERM", "TZ")


def run_there(request: Request, settings: Settings) -> Outcome:
    """Run a command, and end as it ends."""
    stay = Stay(request, endpoint_of(request, settings))
    is_local, cwd = stay.server.state is not None, request.value("--cwd")
    if is_local or cwd is None:
        cwd = directory(request) or os.getcwd()
    return anyio.run(stay.run, command_in(cwd, request, is_local=is_local))


def attach(request: Request, settings: Settings) -> Outcome:
    """Be at a process that was left, and end as it ends."""
    if request.argument is None:
        raise unnamed(request)
    return anyio.run(Stay(request, endpoint_of(request, settings)).attach)


class Stay:
    """One stay at one process of one server, and the word about how it ended."""

    def __init__(self, request: Request, server: ExecEndpoint) -> None:
        self.server = server
        self._request = request
        self._first: Transport | None = None

    async def run(self, command: Command) -> Outcome:
        """Start a command and stay until it has ended."""
        self._first = await self.server.dial_or_start()  # raises at once if no server listens
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
        """Attach to a process at the beginning of its retained output, until it ends."""
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
        return f"It is still running. Attach with: {line}"

    async def _dial(self) -> Transport:
        first, self._first = self._first, None
        return first or await self.server.dial_or_start()


def command_in(cwd: str, request: Request, *, is_local: bool) -> Command:
    """What is to be run there, with our environment and a terminal like ours."""
    read_on = f"holdfast {request.command} --help"
    if not request.words:
        problem = f"Missing command: put it after --, as in: holdfast {request.command} -- make"
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


def endpoint_of(request: Request, settings: Settings) -> ExecEndpoint:
    """The endpoint that `--server` and `--token-file` name; raises UsageWrong."""
    url, token_file = request.value("--server"), request.value("--token-file")
    if url is None:
        if token_file is not None:
            problem = "--token-file requires --server; the local server's token is found by itself"
            raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
        return local_endpoint(settings)
    if token_file is None:
        return remote_endpoint(url)
    # Checked here, because reading a missing token file would create one with a new token.
    if not Path(token_file).exists():
        problem = f"--token-file: {token_file} does not exist"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    return remote_endpoint(url, Path(token_file))
