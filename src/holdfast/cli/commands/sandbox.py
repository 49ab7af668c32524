"""Run a command that is shut in, and say at the end what it was kept from.

The three streams of a command that is shut in: ours, but never our terminal itself.

A process with an open terminal can read later input and change the terminal's modes. So
a terminal is replaced by one of the command's own, and what goes through it is carried over.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import termios
import tty
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import anyio

from holdfast.app.settings import Settings, environment, home_of_person
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, is_terminal, look_for
from holdfast.cli.render.sandbox import (
    ESCAPED,
    Attempt,
    Hindrance,
    Missed,
    Report,
    Tried,
    announcement,
    probe_page,
    probe_record,
    report_lines,
    report_record,
)
from holdfast.cli.terminal import write_all
from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.policy import ENVIRONMENT, OF_THE_SYSTEM, SandboxPolicy, Strength, is_within
from holdfast.confine.probes.probe import probe
from holdfast.confine.proxy.proxy_loop import FilteringProxy
from holdfast.confine.proxy.rules import AllowList, allow_list
from holdfast.confine.sandbox.denials import DenialWatcher
from holdfast.confine.sandbox.preflight import preflight
from holdfast.confine.sandbox.sandbox import SandboxedEntry, prepare_sandbox
from holdfast.confine.sandbox.seccomp import PathRefusal, RefusalReason
from holdfast.confine.sandbox.start_gate import PROXY_PORT, StartGate, command_of
from holdfast.failures import ungrouped
from holdfast.world import disk_failure, make_private

# Read what a command that is to be shut in may touch, from the arguments.

_PROXY: Final = f"http://127.0.0.1:{PROXY_PORT}"
PROXIED: Final = {
    **{f"{kind}_proxy": _PROXY for kind in ("http", "https", "all")},
    **{f"{kind}_PROXY": _PROXY for kind in ("HTTP", "HTTPS", "ALL")},
    "NODE_USE_ENV_PROXY": "1",  # or Node would not look at the others
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A command, where it runs, and what it may touch."""

    argv: tuple[str, ...]
    cwd: str
    policy: SandboxPolicy
    hosts: tuple[str, ...]
    allowed: AllowList
    is_explained: bool = False


def read_order(request: Request, *, home: Path) -> Order:
    """The order that a request is, or a failure that says what is wrong with it.

    The current directory is seen, and can be changed only if it was given with --write.
    """
    if not request.words:
        _refuse("Missing command: put it after --, as in: holdfast sandbox -- make")
    hosts = request.values("--net")
    allowed = allow_list(*hosts)
    cwd = os.getcwd()
    writable = tuple(_directory(word, "--write") for word in request.values("--write"))
    readable = tuple(_existing(word) for word in request.values("--read"))
    if not is_within(cwd, (*readable, *writable)):
        if is_within(os.path.realpath(home), (cwd,)):
            _refuse(
                f"{cwd} holds everything of yours: change to a project first, or name with --read "
                "or --write what the command may see"
            )
        readable = (cwd, *readable)
    policy = SandboxPolicy(
        readable=readable,
        writable=writable,
        environment=(*ENVIRONMENT, *PROXIED) if hosts else ENVIRONMENT,
        # The lesser sandbox has no network namespace for a proxy, and no view of
        # its own that could be compared.
        strength_least=Strength.FULL if hosts or request.has("--explain") else Strength.REDUCED,
    )
    return Order(
        argv=request.words,
        cwd=cwd,
        policy=policy,
        hosts=hosts,
        allowed=allowed,
        is_explained=request.has("--explain"),
    )


def kept_in(settings: Settings) -> Path:
    """Where it is kept which sandboxes there are."""
    directory = settings.state / "sandbox"
    try:
        make_private(directory)
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    return directory


def _directory(word: str, flag: str) -> str:
    if not os.path.isdir(word):
        _refuse(f"{flag}: {word} is not a directory")
    return os.path.realpath(word)


def _existing(word: str) -> str:
    if not os.path.exists(word):
        _refuse(f"--read: there is no {word}")
    return os.path.realpath(word)


def _refuse(problem: str) -> NoReturn:
    raise UsageWrong(problem=problem, read_on="holdfast sandbox --help")


_STREAMS: Final = (0, 1, 2)
_PIECE: Final = 64 * 1024
_OUTPUT_FLAGS: Final = 1  # the place of these flags among the attributes of a terminal


class Streams:
    """What a command reads from and writes to; `files` is for its entry, until `hand_over`."""

    def __init__(self) -> None:
        self._ours = [number for number in _STREAMS if _is_terminal(number)]
        self._is_typed = 0 in self._ours and _is_in_front()
        self._theirs: list[int] = []
        self._master: int | None = None
        self.files = {number: number for number in _STREAMS if number not in self._ours}
        for number in self.files:
            if not _is_open(number):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
        if self._ours:
            self._open(self._ours[0])

    @property
    def has_terminal(self) -> bool:
        """Whether the command reads from a terminal."""
        return 0 in self._ours

    def hand_over(self) -> None:
        """Close what the command has now; when it has closed it too, its output has ended."""
        while self._theirs:
            os.close(self._theirs.pop())

    def resize(self) -> None:
        """Give its terminal the size of ours."""
        if self._master is not None:
            with suppress(OSError, termios.error):
                termios.tcsetwinsize(self._master, termios.tcgetwinsize(self._ours[0]))

    async def show(self) -> None:
        """Carry what it writes to our terminal; when that is gone, its own is gone, too."""
        if self._master is None:
            return
        screen = next((number for number in (1, 2) if number in self._ours), 0)
        with suppress(OSError):
            while data := await _read(self._master):
                await write_all(screen, data)
        self._hang_up()

    async def feed(self) -> None:
        """Carry what is typed to it, key by key, for as long as anything is."""
        if not self._is_typed:
            return
        with suppress(OSError):
            while data := await _read(0):
                await self._type(data)

    @contextmanager
    def raw(self) -> Generator[None]:
        """Let every key through as it is; afterwards our terminal is as it was."""
        if not self._is_typed:
            yield
            return
        before = termios.tcgetattr(0)
        try:
            tty.setraw(0, termios.TCSADRAIN)
            yield
        finally:
            with suppress(termios.error):  # it may be gone
                termios.tcsetattr(0, termios.TCSADRAIN, before)

    def close(self) -> None:
        """Close what is left."""
        self.hand_over()
        self._hang_up()

    async def _type(self, data: bytes) -> None:
        if self._master is not None:
            await write_all(self._master, data)

    def _hang_up(self) -> None:
        if self._master is not None:
            os.close(self._master)
            self._master = None

    def _open(self, like: int) -> None:
        """A terminal like ours, under a number of its own for each stream."""
        self._master, slave = os.openpty()
        attributes = termios.tcgetattr(like)
        if not self._is_typed:  # ours goes on to turn line ends into what screens need
            attributes[_OUTPUT_FLAGS] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._theirs = [slave, *(os.dup(slave) for _ in self._ours[1:])]
        self.files |= dict(zip(self._theirs, self._ours, strict=True))
        self.resize()


async def _read(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    return os.read(descriptor, _PIECE)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _is_terminal(number: int) -> bool:
    return _is_open(number) and os.isatty(number)


def _is_in_front() -> bool:
    """Whether keys are for us; in the background, touching the terminal would stop us."""
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


# Be at a command that is shut in until it ends, as if it ran plainly.

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGWINCH)
_LAST_WORDS: Final = 2.0  # seconds that what a killed command wrote may take to arrive


@contextmanager
def signals_waiting() -> Generator[None]:
    """Let signals wait until a stay hears them: the command may run before it does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True, slots=True)
class Stay:
    """One stay at one process; `find` says which process is to hear our signals, if it lives."""

    pid: int
    streams: Streams
    find: Callable[[], int | None]
    proxy: FilteringProxy | None = None
    listener: socket.socket | None = None

    async def run(self) -> int:
        """Stay until it has ended, and return its exit status."""
        with (
            ungrouped(),
            self.streams.raw(),
            anyio.open_signal_receiver(*_SIGNALS) as signals,
        ):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._heed, signals)
                tasks.start_soon(self.streams.feed)
                if self.proxy is not None and self.listener is not None:
                    tasks.start_soon(self.proxy.serve, self.listener)
                await self._ended()
                tasks.cancel_scope.cancel()
        return _status_of(self.pid)

    async def _ended(self) -> None:
        """Wait until it has ended and all that it wrote has been shown."""
        async with anyio.create_task_group() as showing:
            showing.start_soon(self.streams.show)
            await _end_of(self.pid)
            showing.cancel_scope.deadline = anyio.current_time() + _LAST_WORDS

    async def _heed(self, signals: AsyncIterator[signal.Signals]) -> None:
        """Hand every signal on: whether it ends the command is for the command to say."""
        async for number in signals:
            if number == signal.SIGWINCH:
                self.streams.resize()
            elif (command := self.find()) is not None:
                _send(command, number)


def _send(command: int, number: signal.Signals) -> None:
    """To its whole group, as a terminal does, if it has one of its own."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(command) == command:
            os.killpg(command, number)
        else:
            os.kill(command, number)


async def _end_of(pid: int) -> None:
    life = os.pidfd_open(pid)
    try:
        await anyio.wait_readable(life)
    finally:
        os.close(life)


def _status_of(pid: int) -> int:
    """How a process that has ended has ended, as a shell says it."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


_SYSTEM: Final = "/usr/bin:/bin"
_SHELL: Final = "/bin/sh"
# Inside, because only there it is known what is seen; $0 is how a session is made, or nothing.
_FOUND: Final = """
say() { printf 'sandbox: %s\\n' "$1" >&2; exit "$2"; }
found=$1
case $1 in */*) ;; *)
    IFS=:
    for each in $PATH; do found=$each/$1; [ -f "$found" ] && [ -x "$found" ] && break; done
    unset IFS ;;
esac
[ -e "$found" ] || say "no program $1 is found inside" 127
[ -f "$found" ] && [ -x "$found" ] || say "$1 cannot be run" 126
exec $0 "$@"
"""


def sandbox(request: Request, settings: Settings) -> Outcome:
    """Run a command shut in, end as it ends, and say what was stopped."""
    order = read_order(request, home=home_of_person())
    state = kept_in(settings)
    proxy = FilteringProxy(order.allowed)
    with ExitStack() as undo:
        streams = Streams()
        undo.callback(streams.close)
        shut = undo.enter_context(
            prepare_sandbox(_entry(order, streams), order.policy, state=state)
        )
        if not request.is_json:
            complain(_announced(shut))
        watch = undo.enter_context(DenialWatcher()) if order.is_explained else None
        status = _stay(shut, streams, proxy if order.hosts else None, watch)
        told = None if watch is None else watch.told()
    report = _report(order, shut, proxy, status)
    if told is not None:
        missed = [_missed(each, order.policy) for each in told.refusals]
        report = replace(report, is_explained=True, missed=missed, missed_untold=told.untold)
    if request.is_json:
        return Outcome(status=status, hint=json.dumps(report_record(report)))
    lines = report_lines(report, is_talkative=is_terminal(sys.stderr))
    return Outcome(status=status, hint="\n".join(lines))


def _entry(order: Order, streams: Streams) -> ProcessEntry:
    """The command as it would start plainly, as the first of a group of its own."""
    variables = environment() | (PROXIED if order.hosts else {})
    argv = [_SHELL, "-c", _FOUND, _leading(streams.has_terminal), *order.argv]
    return ProcessEntry(argv, variables, order.cwd, argv[0], streams.files)


def _leading(has_terminal: bool) -> str:
    """What makes a command hear the signals of its terminal, and the shell around it not."""
    program = shutil.which("setsid", path=_SYSTEM)
    if program is None:
        return ""
    return f"{program} --ctty" if has_terminal else program


def _stay(
    shut: SandboxedEntry,
    streams: Streams,
    proxy: FilteringProxy | None,
    watch: DenialWatcher | None,
) -> int:
    """Start it and be at it until it ends; its exit status."""
    with signals_waiting(), ExitStack() as undo:
        if shut.strength is Strength.REDUCED:
            pid = _entered(shut.entry)
            streams.hand_over()
            return anyio.run(Stay(pid, streams, lambda: pid).run)
        with StartGate(shut.entry) as threshold:
            pid = _entered(threshold.entry if watch is None else watch.watched(threshold.entry))
            undo.callback(_put_down, pid, os.pidfd_open(pid))
            streams.hand_over()
            threshold.arrive()
            listener: socket.socket | None = None
            if proxy is not None:
                listener = undo.enter_context(threshold.listen())
            if watch is not None:
                watch.begin()
            threshold.cross()
        find = partial(command_of, threshold.first)
        return anyio.run(Stay(pid, streams, find, proxy, listener).run)


def _entered(entry: ProcessEntry) -> int:
    try:
        return enter(entry)
    except OSError as error:
        reason = f"{error.filename or entry.program}: {error.strerror}"
        raise SandboxFailed(reason=reason) from error


def _put_down(pid: int, life: int) -> None:
    """End it, if it has not ended by itself."""
    with suppress(ProcessLookupError, ChildProcessError):
        signal.pidfd_send_signal(life, signal.SIGKILL)
        os.waitpid(pid, 0)
    os.close(life)


def _announced(shut: SandboxedEntry) -> str:
    if shut.strength is Strength.FULL:
        return announcement(shut.strength, (), shut.unkept)
    return announcement(shut.strength, preflight().reasons, shut.lacks)


def _missed(each: PathRefusal, policy: SandboxPolicy) -> Missed:
    """What it means for a person that a path was out of reach."""
    if each.why == RefusalReason.UNSEEN:
        why = Hindrance.UNSEEN
    elif is_within(each.path, policy.writable):
        why = Hindrance.PROTECTED
    else:
        is_of_system = is_within(each.path, OF_THE_SYSTEM)
        why = Hindrance.OF_THE_SYSTEM if is_of_system else Hindrance.READ_ONLY
    return Missed(each.path, why, each.count)


def _report(order: Order, shut: SandboxedEntry, proxy: FilteringProxy, status: int) -> Report:
    traffic = proxy.traffic
    return Report(
        status=status,
        strength=shut.strength,
        lacks=shut.lacks,
        readable=order.policy.readable,
        writable=order.policy.writable,
        unseen=shut.unseen,
        hosts=order.hosts,
        reached=[Attempt(host, count) for host, count in traffic.reached],
        blocked=[Attempt(each.host, each.count, each.why) for each in traffic.stopped],
        unnamed=traffic.unnamed,
    )


# Try to break out of the sandbox that is made here, and show what became of it.

_CLEAR = "\r\x1b[K"


def sandbox_probe(request: Request, settings: Settings) -> Outcome:
    """Try every way out; the status is 1 if one of them led out."""
    shows = is_terminal(sys.stderr) and not settings.colourless
    if shows:
        complain("trying to break out ...")
    try:
        found = probe(state=kept_in(settings))
    finally:
        if shows:
            complain(_CLEAR)
    strength = preflight().strength or "none"
    tried = [Tried(each.name, each.tries, each.verdict, each.why) for each in found]
    status = 1 if any(each.verdict == ESCAPED for each in tried) else 0
    if request.is_json:
        return Outcome(status=status, answer=json.dumps(probe_record(tried, strength)) + "\n")
    look = look_for(sys.stdout, request, settings)
    return Outcome(status=status, answer=probe_page(tried, strength, look))
