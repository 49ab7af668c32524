"""The processes of one session, by the ids that its client assigned."""

from __future__ import annotations

import re
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import partial

import anyio

from holdfast.confine import Place
from holdfast.confine.failures import PlaceLost, SandboxUnavailable
from holdfast.exec.failures import (
    KeeperUnavailable,
    ProcessExists,
    ProcessUnknown,
    RequestInvalid,
    RequestUnfit,
    StartCancelled,
    StartFailed,
)
from holdfast.exec.file_uri import path_of
from holdfast.exec.keeper.client_loop import KeeperClient, KeeperNotAsked, KeptProcess, ProcessSpec
from holdfast.exec.keeper.discovery import SESSION_MARK, end_session, end_started
from holdfast.exec.keeper.stdin_loop import StdinWriter
from holdfast.exec.protocol import EnvPolicy, ListResult, StartResult, WriteParams
from holdfast.exec.server.launcher import Launch, ServerInfo, plain_order, prepared
from holdfast.exec.server.model import StartAsked
from holdfast.exec.server.places import PLAIN, BoundPlace
from holdfast.exec.server.process import ServerProcess
from holdfast.exec.server.state_records import ProcessRecord, StateRecords, make_files, remove_files
from holdfast.exec.server.worker_threads import WorkerThreads
from holdfast.exec.storage.retention_loop import Retention
from holdfast.failures import Failure
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import Level
from holdfast.world import Clock

CORE = frozenset(
    {
        "PATH",
        "SHELL",
        "TMPDIR",
        "TEMP",
        "TMP",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "USER",
    }
)
NEVER = frozenset(
    {
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
        # Of our own services: what has it is not ended with its starter.
        "HOLDFAST_SERVICE",
    }
)
_SECRETS = ("*KEY*", "*SECRET*", "*TOKEN*")
_INHERITED = {"all", "core", "none"}


def environment(
    policy: EnvPolicy | None, *, own: Mapping[str, str], asked: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of a process: inherited variables by policy, then requested ones.

    Without a policy only the requested ones. Some variables never reach a process.
    """
    chosen = {} if policy is None else _inherited(policy, own)
    chosen.update(asked)
    return {name: value for name, value in chosen.items() if name not in NEVER}


def _inherited(policy: EnvPolicy, own: Mapping[str, str]) -> dict[str, str]:
    chosen = _beginning(policy.inherit, own)
    if not policy.ignore_default_excludes:
        chosen = _without(chosen, _SECRETS)
    chosen = _without(chosen, policy.exclude)
    chosen.update(policy.set)
    if policy.include_only:
        chosen = {n: value for n, value in chosen.items() if _matches(n, policy.include_only)}
    return chosen


def _beginning(inherit: str, own: Mapping[str, str]) -> dict[str, str]:
    if inherit not in _INHERITED:
        raise RequestInvalid(
            reason=f"unknown variant `{inherit}`, expected one of `all`, `core`, `none`"
        )
    if inherit == "none":
        return {}
    return {name: value for name, value in own.items() if inherit == "all" or name in CORE}


def _without(variables: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    gone = tuple(patterns)
    return {name: value for name, value in variables.items() if not _matches(name, gone)}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(_pattern(pattern).fullmatch(name) for pattern in patterns)


def _pattern(pattern: str) -> re.Pattern[str]:
    """Compile a case-insensitive pattern with `*` and `?`."""
    # `translate` uses atomic groups: a hostile pattern cannot cause exponential backtracking.
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)


# Seconds, in which others get the processor.
_SWEPT_AT_ONCE, _SWEEP_PAUSE = 32, 0.001
# Seconds; most commands are over by then.
_A_WHILE = 1.0
_NUMBERS_MAX = 10_000
# Seconds that a start may take which is to come to nothing.
_UNDERWAY_LONGEST = 30.0
# Seconds that a slow reader has for what has been closed.
_WANTED_LONGEST = 3600.0
# Seconds that a start waits for the keeper after one that was lost.
_KEEPER_LONGEST = 30.0


@dataclass(slots=True)
class ProcessServices:
    """Keeper, records, threads and clock that all sessions share; a lost keeper is replaced."""

    keeper: KeeperClient
    records: StateRecords
    workers: WorkerThreads
    clock: Clock
    fresh_key: Callable[[], str]
    own_environment: Mapping[str, str]
    retention_bytes_max: int
    telemetry: Telemetry | None = None
    _replaced: anyio.Event = field(default_factory=anyio.Event, repr=False)

    def replace_keeper(self, keeper: KeeperClient) -> None:
        """Use a new keeper after one was lost, and wake waiting starts."""
        self.keeper = keeper
        self._replaced.set()
        self._replaced = anyio.Event()

    async def start(self, order: ProcessSpec) -> KeptProcess:
        """Start a process; waits while a lost keeper is being replaced.

        Raises `KeeperLost` if the keeper is lost during the start: the process may have run, so it
        is not started again.
        """
        while True:
            keeper, replaced = self.keeper, self._replaced
            try:
                return await keeper.start(order)
            except KeeperNotAsked as error:
                with anyio.move_on_after(_KEEPER_LONGEST) as patience:
                    await replaced.wait()
                if patience.cancelled_caught:
                    state = str(self.records.state)
                    reason = "the last one was lost and has not been replaced"
                    raise KeeperUnavailable(state=state, reason=reason) from error

    def tell_stall(self, process: ServerProcess) -> None:
        """Report once that a disk failure blocks a process, and once that it continues."""
        stalled, was_stalled = process.retention.stalled, process.was_stalled
        process.was_stalled = stalled is not None
        if self.telemetry is None or process.was_stalled == was_stalled:
            return
        if stalled is not None:
            self.telemetry.record(stalled)
        else:
            what = "a process goes on: there is room for its output again"
            self.telemetry.note(Level.INFO, what, fields={"process": process.record.process})

    async def open_up(self, process: ServerProcess) -> None:
        """Remove the sandbox of an exited process; failures are reported."""
        undo, process.undo = process.undo, None
        try:
            if undo is not None:
                await self.workers.do(undo)
        except Failure as failure:
            if self.telemetry is not None:
                self.telemetry.record(failure)

    async def make_files(self, process: ServerProcess, now: float) -> None:
        """Create the files of a process that has run for a while, before its first output."""
        if not process.has_files and now - (process.seen_since or now) >= _A_WHILE:
            process.has_files = True
            directory = self.records.directory(process.record.key)
            await self.workers.do(lambda: make_files(directory, process.record))

    async def end_started(self, process: ServerProcess) -> None:
        """End a process and its descendants by mark."""
        keys, numbers = {process.record.key}, [] if process.number is None else [process.number]
        await self.workers.do(lambda: end_started(keys, numbers))

    async def forget(self, process: ServerProcess) -> None:
        """Kill a process if it runs, and remove its record and files."""
        await process.forget()
        await self.open_up(process)
        directory = self.records.forget_process(process.record.key)
        await self.workers.do(lambda: remove_files(directory))


class Starting:
    """Reservation of a process id during a start; compared by identity."""

    __slots__ = ()


class Processes:
    """All processes of a session; an id is in use until its process is forgotten.

    During a start a `Starting` object reserves the id. The result counts only if that very object
    still holds the id.
    """

    def __init__(self, session: str, services: ProcessServices, site: BoundPlace) -> None:
        self._session, self._services, self._site = session, services, site
        self._entries: dict[str, ServerProcess | Starting] = {}
        self._numbers: deque[tuple[int, str]] = deque(maxlen=_NUMBERS_MAX)  # also of the forgotten
        self._has_started = False  # anything, ever
        self._underway = 0  # starts
        self._changed = anyio.Event()

    def __iter__(self) -> Iterator[ServerProcess]:
        return iter([entry for entry in self._entries.values() if isinstance(entry, ServerProcess)])

    def adopt(self, process: ServerProcess) -> None:
        """Add a process that the last server started."""
        self._entries[process.record.process] = process
        self._remember(process)

    @property
    def keeps_session(self) -> bool:
        """Whether a running process was started with `keep`."""
        return any(process.record.is_kept and process.is_running for process in self)

    async def start(self, asked: StartAsked) -> tuple[StartResult, ServerProcess]:
        """Start a process; on failure its id is free again.

        A start that has begun is completed even if the connection is lost, so that a returning
        client finds the process or a free id.
        """
        cwd = path_of(asked.cwd)
        if not asked.argv:
            raise RequestInvalid(reason="argv must not be empty")
        name = asked.process_id
        if name in self._entries:
            raise ProcessExists(process=name)
        _refuse_confinement(asked)
        variables = environment(
            asked.env_policy, own=self._services.own_environment, asked=asked.env
        )
        variables[SESSION_MARK] = self._session
        reservation = self._entries[name] = Starting()
        self._has_started, self._underway = True, self._underway + 1
        with anyio.CancelScope(shield=True):
            try:
                return await self._start(asked, cwd, variables, reservation)
            except Failure:
                if self._entries.get(name) is reservation:
                    del self._entries[name]
                raise
            finally:
                self._underway -= 1
                self._changed.set()
        raise AssertionError("nothing cancels the scope")

    async def _start(
        self, asked: StartAsked, cwd: bytes, variables: dict[str, str], reservation: Starting
    ) -> tuple[StartResult, ServerProcess]:
        name = asked.process_id
        process = await self._launch(asked, cwd, variables)
        self._remember(process)
        if self._entries.get(name) is not reservation:
            await self._services.end_started(process)
            await self._services.forget(process)
            raise StartCancelled(process=name)
        self._entries[name] = process
        how = StartResult(name, process.sandbox_type, process.record.sandbox, process.lacks)
        return how, process

    def get(self, name: str) -> ServerProcess:
        """Return a started process by id."""
        match self._entries.get(name):
            case ServerProcess() as process:
                return process
            case Starting():
                raise RequestUnfit(reason=f"process id {name} is starting")
            case None:
                raise ProcessUnknown(process=name)

    async def write(self, asked: WriteParams) -> str:
        """Write to the stdin of a process; returns the status."""
        if not asked.write_id:
            raise RequestInvalid(reason="writeId must not be empty")
        match self._entries.get(asked.process_id):
            case ServerProcess() as process:
                return await process.write(asked)
            case Starting():
                return "starting"
            case None:
                return "unknownProcess"

    async def signal(self, name: str, number: int) -> None:
        """Signal a process; an unknown one is ignored."""
        if isinstance(process := self._entries.get(name), ServerProcess):
            await process.signal(number)

    async def terminate(self, name: str) -> bool:
        """Kill a process and its descendants; returns whether it was running.

        A start in progress loses its id at once, and its process as soon as there is one.
        """
        match self._entries.get(name):
            case ServerProcess() as process:
                was_running = process.is_running
                await process.terminate(partial(self._services.end_started, process))
                return was_running
            case Starting():
                del self._entries[name]
                return True
            case _:
                return False

    async def forget(self, name: str) -> ServerProcess | None:
        """Forget an exited process and return it; None if the id is unknown.

        Raises `RequestUnfit` while it runs.
        """
        if name not in self._entries:
            return None
        process = self.get(name)
        if process.is_running:
            raise RequestUnfit(reason=f"process {name} is running: terminate it first")
        del self._entries[name]
        # A cancelled caller would leave the files behind.
        with anyio.CancelScope(shield=True):
            await self._services.forget(process)
        return process

    @property
    def numbers(self) -> Mapping[int, str]:
        """Limit numbers of all processes, forgotten ones included, with their keys."""
        return dict(self._numbers)

    def listed(self) -> ListResult:
        """List all started processes."""
        return ListResult(tuple(process.listed() for process in self))

    async def sweep(self, now: float, *, closed_ttl: float) -> None:
        """Forget processes that have been closed for long enough; later if a client still reads."""
        for number, process in enumerate(self, start=1):
            # Yield, so that output is not delayed by a sweep over thousands of processes.
            if number % _SWEPT_AT_ONCE == 0:
                await anyio.sleep(_SWEEP_PAUSE)
            if process.needs_nothing or self._entries.get(process.record.process) is not process:
                continue
            process.tick(now)
            if process.is_running:
                await self._services.make_files(process, now)
            else:
                await self._services.open_up(process)
            self._services.tell_stall(process)
            ttl = max(closed_ttl, _WANTED_LONGEST) if process.hold.is_wanted else closed_ttl
            if process.closed_since is not None and now - process.closed_since >= ttl:
                self._entries.pop(process.record.process, None)
                await self._services.forget(process)

    async def end(self) -> None:
        """Kill and forget all processes and their descendants.

        Waits for starts in progress, which are cancelled.
        """
        processes, numbers = list(self), list(self.numbers)
        self._entries.clear()
        if self._has_started:
            await self._services.workers.do(lambda: end_session(self._session, numbers))
        with anyio.move_on_after(_UNDERWAY_LONGEST):
            while self._underway:
                self._changed = anyio.Event()
                await self._changed.wait()
        async with anyio.create_task_group() as tasks:
            for process in processes:
                tasks.start_soon(self._services.forget, process)

    def release(self) -> None:
        """Close all descriptors without ending any process."""
        for process in self:
            process.release()

    def _remember(self, process: ServerProcess) -> None:
        self._has_started = True
        if process.number is not None:
            self._numbers.append((process.number, process.record.key))

    async def _launch(
        self, asked: StartAsked, cwd: bytes, variables: dict[str, str]
    ) -> ServerProcess:
        async with self._site.reached() as place:
            launch = await self._prepared(asked, cwd, variables, place)
            try:
                return await self._started(asked, launch)
            except Failure as failure:
                await self._services.workers.do(launch.close)
                if isinstance(failure, StartFailed) and place.is_lost:
                    raise PlaceLost(directory=self._site.name) from failure
                raise

    async def _prepared(
        self, asked: StartAsked, cwd: bytes, variables: dict[str, str], place: Place
    ) -> Launch:
        services = self._services
        order = plain_order(services.fresh_key(), asked, cwd, variables)
        if asked.sandbox is None and self._site.name == PLAIN:
            return Launch(order)
        own = ServerInfo(services.own_environment, services.records.state)
        return await services.workers.do(
            lambda: prepared(order, asked, place, own, self._site.state)
        )

    async def _started(self, asked: StartAsked, launch: Launch) -> ServerProcess:
        services = self._services
        record = ProcessRecord(
            key=launch.order.key,
            session=self._session,
            process=asked.process_id,
            argv=asked.argv,
            tty=asked.tty,
            started_at_ms=int(services.clock.now() * 1000),
            sandbox=launch.strength or "",
            is_kept=asked.keep,
        )
        try:
            with services.records.naming(record.key):
                directory = services.records.keep_process(record)
            kept = await services.start(launch.order)
        except Failure:
            remove_files(services.records.forget_process(record.key))
            raise
        stdin = None
        try:
            with services.records.naming(record.key):
                stdin = StdinWriter.open(directory, kept)
                limit, end = services.retention_bytes_max, services.records.end_of(record)
                retention = Retention.open(directory, kept, bytes_max=limit, end=end)
        except Failure:
            if stdin is not None:
                stdin.release()
            await kept.forget()
            remove_files(services.records.forget_process(record.key))
            raise
        process = ServerProcess(record, kept=kept, retention=retention, stdin=stdin)
        process.undo, process.lacks = launch.close if launch.strength else None, launch.lacks
        return process


def signal_number(name: str) -> int:
    """Return the number of a signal: `interrupt`, or a name with or without SIG."""
    word = "INT" if name == "interrupt" else name.upper().removeprefix("SIG")
    try:
        return signal.Signals[f"SIG{word}"].value
    except KeyError as error:
        reason = f"unknown variant `{name}`, expected `interrupt` or the name of a signal"
        raise RequestInvalid(reason=reason) from error


def _refuse_confinement(asked: StartAsked) -> None:
    if asked.enforce_managed_network or asked.network_proxy is not None:
        raise SandboxUnavailable(reason="this server cannot confine the network")
