"""Find or start the keeper of a state directory, and find processes by the mark of their keeper.

The holder of the lock of a state directory is its server, and only it may connect here: so two
servers never start two keepers. The keeper holds a lock of its own for its lifetime.

The mark is an environment variable, which all descendants inherit; it names the process key and the
keeper. Descendants with another environment are found by their limit number
(`world.process_marks`), which ends in the tag of the keeper. Only Linux shows environments of other
processes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.exec.failures import KeeperMismatched, KeeperUnavailable, StateTaken
from holdfast.exec.keeper.protocol import (
    LOCK_NAME,
    LOG_NAME,
    MARK,
    SOCKET_NAME,
    TAG_BITS,
    VERSIONS,
    KeeperName,
    MalformedPacket,
    Message,
    agreed,
    number,
    numbers,
    receive,
    send,
)
from holdfast.world import (
    SERVICE,
    SweepResult,
    SystemProcess,
    command_of,
    disk_failure,
    end_members,
    environment_of,
    is_service,
    limit_number,
    signal_exactly,
    system_process,
    system_processes,
)

# In the environment of a process: its session's id.
SESSION_MARK = "HOLDFAST_EXEC_SESSION"
_MARK = MARK.encode() + b"="
_SESSION = SESSION_MARK.encode() + b"="


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedProcess:
    """A living process with a mark: its key and its keeper."""

    process: SystemProcess
    key: str
    keeper: KeeperName
    command: str
    session: str = ""  # of the server, where that is known


def orphans() -> list[MarkedProcess]:
    """Return every marked process whose keeper is gone, as far as we may inspect it.

    Keepers in other pid namespaces are skipped: whether they live cannot be seen from here.
    """
    found = list(_marked())
    here = namespace_of(os.getpid()) if found else None
    return [each for each in found if each.keeper.namespace == here and is_gone(each.keeper)]


def kill(found: Collection[MarkedProcess]) -> int:
    """Kill exactly these processes, never one that reuses a pid; returns the number killed."""
    return sum(signal_exactly(each.process, signal.SIGKILL) for each in found)


def kill_held(keeper: KeeperName) -> list[MarkedProcess]:
    """Kill all children of a keeper and their descendants, until none is left."""
    found = [each for each in _marked() if each.keeper == keeper]

    def is_held(process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[1] == keeper or _has_tag(process.pid, keeper)

    end_members(is_held)
    return found


def end_started(keys: Collection[str], numbers: Collection[int] = ()) -> SweepResult:
    """End the processes of these keys and all their descendants; blocks.

    `numbers` are their limit numbers, as far as known.
    """

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[0] in keys

    return end_members(is_started, numbers=numbers)


def end_session(session: str, numbers: Collection[int] = ()) -> SweepResult:
    """End all processes of one server session and their descendants; blocks."""
    mark = _SESSION + session.encode()

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return mark in environment

    return end_members(is_started, numbers=numbers)


class DetachedChild(NamedTuple):
    """A living process that outlives the one that started it, with that one's key and session."""

    process: SystemProcess
    key: str
    session: str
    command: str


def detached(
    sessions: Collection[str], roots: Collection[int], numbers: Mapping[int, tuple[str, str]]
) -> list[DetachedChild]:
    """Return descendants that outlive the process that started them.

    `roots` are the pids of session processes; `numbers` maps limit numbers to key and session. A
    process whose parent has the same key is not listed, being part of that one; nor are our own
    services.
    """
    found: dict[int, DetachedChild] = {}
    for process in system_processes():
        if process.is_dead:
            continue
        marked = _look(process)
        if marked is not None and marked.session in sessions:
            key, session = marked.key, marked.session
        elif marked is None and (known := numbers.get(limit_number(process.pid) or 0)):
            key, session = known
        else:
            continue
        found[process.pid] = DetachedChild(process, key, session, command_of(process.pid))
    return [
        each
        for pid, each in sorted(found.items())
        if pid not in roots
        and getattr(found.get(each.process.parent), "key", "") != each.key
        and not is_service(environment_of(pid))
    ]


def name_of(pid: int) -> KeeperName | None:
    """Return the name of a living keeper; None if it does not live."""
    process, namespace = system_process(pid), namespace_of(pid)
    if process is None or process.is_dead or namespace is None:
        return None
    return KeeperName(pid, process.started, namespace)


def is_gone(keeper: KeeperName) -> bool:
    """Whether a keeper of our pid namespace no longer lives."""
    process = system_process(keeper.pid)
    return process is None or process.is_dead or process.started != keeper.started


def namespace_of(pid: int) -> int | None:
    """Return the pid namespace of a process; None if it is gone or not visible."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _has_tag(pid: int, keeper: KeeperName) -> bool:
    limit = limit_number(pid)
    return limit is not None and limit & ~(-1 << TAG_BITS) == keeper.tag


def _marked() -> Iterator[MarkedProcess]:
    for process in system_processes():
        if not process.is_dead and (found := _look(process)) is not None:
            yield found


def _look(process: SystemProcess) -> MarkedProcess | None:
    environment = environment_of(process.pid)
    key, keeper = _mark_of(environment)
    if not key or keeper is None:
        return None
    marks = (item for item in environment if item.startswith(_SESSION))
    return MarkedProcess(
        process=process,
        key=key,
        keeper=keeper,
        command=command_of(process.pid),
        session=os.fsdecode(next(marks, b"").removeprefix(_SESSION)),
    )


def _mark_of(environment: Sequence[bytes]) -> tuple[str, KeeperName | None]:
    """Return the key and the keeper of a mark; empty if there is none."""
    mark = next((item for item in environment if item.startswith(_MARK)), b"")
    key, _, keeper = os.fsdecode(mark.removeprefix(_MARK)).rpartition("@")
    named = KeeperName.parse(keeper)
    return ("", None) if named is None else (key, named)


SERVER_LOCK_NAME = "server.lock"

_ANSWER_LONGEST = 10.0
_LOOK_AGAIN = 0.005
_TRIES_MAX = 3
# The keeper imports only its own package: a stub replaces `holdfast.exec`, whose public API it does
# not need.
_BOOT = """
import resource, sys, types
if sys.argv[3]:  # before it takes note of the limit that is meant for processes
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[3]), allowed))
sys.path.insert(0, sys.argv[1])
room = sys.modules["holdfast.exec"] = types.ModuleType("holdfast.exec")
room.__path__ = [sys.argv[1] + "/holdfast/exec"]
from holdfast.exec.keeper.keeper import main
sys.exit(main(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeeperConnection:
    """A keeper after its handshake: connection, name and protocol version.

    `orphans` had outlived the previous keeper, and were killed.
    """

    connection: socket.socket
    name: KeeperName
    version: int
    was_there: bool
    orphans: list[MarkedProcess]


def lock_state(state: Path) -> int:
    """Lock a state directory; returns the descriptor, which holds the lock while it is open."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _opened_lock(state / SERVER_LOCK_NAME)
    except OSError as error:
        raise disk_failure(error, path=str(state)) from error
    if lock is None:
        raise StateTaken(state=str(state))
    return lock


def connect_keeper(
    state: Path,
    *,
    versions: Sequence[int] = VERSIONS,
    patience: float = _ANSWER_LONGEST,
    open_files: int | None = None,
) -> KeeperConnection:
    """Connect to the keeper of a locked state directory; starts one if none lives.

    Children of a new keeper get `open_files` as soft limit, or ours. A keeper without a common
    protocol version is replaced if it holds nothing, and left alone otherwise. If the last keeper
    was killed, its surviving children are killed first.
    """
    if sys.platform != "linux":
        reason = "this system cannot move output into files by itself, so nothing would be safe"
        raise KeeperUnavailable(state=str(state), reason=reason)
    deadline = time.monotonic() + patience
    orphans: list[MarkedProcess] = []
    try:
        # It may end, for want of work, in the moment we come.
        for _ in range(_TRIES_MAX):
            connection = _dialled(state, deadline)
            was_there = connection is not None
            if connection is None:
                orphans += _reaped(state)
                connection = _started(state, deadline, open_files)
            with ExitStack() as undone:
                undone.enter_context(connection)
                greeted = _handshake(state, connection, versions, deadline)
                if greeted is not None:
                    connection.setblocking(False)
                    undone.pop_all()
                    name, version = greeted
                    return KeeperConnection(
                        connection=connection,
                        name=name,
                        version=version,
                        was_there=was_there,
                        orphans=orphans,
                    )
            _await_death(state, deadline)
    except TimeoutError as error:
        raise KeeperUnavailable(state=str(state), reason="it does not answer") from error
    except MalformedPacket as error:
        reason = f"it speaks nonsense: {error}"
        raise KeeperUnavailable(state=str(state), reason=reason) from error
    except OSError as error:
        raise disk_failure(error, path=str(state)) from error
    raise KeeperUnavailable(state=str(state), reason=f"{_TRIES_MAX} of them hung up in a row")


def has_keeper(state: Path) -> bool:
    """Whether a keeper of this directory lives: it holds the lock."""
    lock = _opened_lock(state / LOCK_NAME)
    if lock is not None:
        os.close(lock)
    return lock is None


def _opened_lock(path: Path) -> int | None:
    """Return a descriptor that holds the lock, or None while another process does."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _reaped(state: Path) -> list[MarkedProcess]:
    """Kill what outlived a killed keeper; a keeper that exited cleanly left nothing."""
    name = KeeperName.parse((state / LOCK_NAME).read_text("ascii", errors="replace"))
    # A copied state directory contains the name of a keeper that may live elsewhere.
    if name is None or name.namespace != namespace_of(os.getpid()) or not is_gone(name):
        return []
    return kill_held(name)


def _dialled(state: Path, deadline: float) -> socket.socket | None:
    """Connect to the keeper that lives here; waits for one that is starting."""
    while has_keeper(state):
        if (connection := _connected(state, deadline)) is not None:
            return connection
        _pause(deadline)
    return None


def _connected(state: Path, deadline: float) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ExitStack() as undone:
        undone.enter_context(connection)
        connection.settimeout(_left(deadline))
        directory = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        undone.callback(os.close, directory)
        try:
            # By its directory, for a path of any length.
            connection.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        undone.pop_all()
        os.close(directory)
    return connection


def _started(state: Path, deadline: float, open_files: int | None) -> socket.socket:
    """Start a new keeper, detached in its own session, and connect to it."""
    ours = str(Path(__file__).resolve().parents[3])
    # -I -S: nothing of the user's and nothing that is installed; what it needs, it has.
    words = [ours, str(state.resolve()), "" if open_files is None else str(open_files)]
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, *words]
    with open(state / LOG_NAME, "ab") as log:
        try:
            ended = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={SERVICE: "keeper"},
                check=False,
                timeout=_left(deadline),
            )
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
    # One that a server started just before it died may have been faster.
    connection = _connected(state, deadline) if ended.returncode == 0 else _dialled(state, deadline)
    if connection is None:
        reason = f"it ended with status {ended.returncode}; see {state / LOG_NAME}"
        raise KeeperUnavailable(state=str(state), reason=reason)
    return connection


def _handshake(
    state: Path, connection: socket.socket, versions: Sequence[int], deadline: float
) -> tuple[KeeperName, int] | None:
    """Return name and version of a keeper; None if it ends, by itself or on request.

    A keeper without our newest version is kept only while it holds children.
    """
    hello = _asked(connection, {"ask": "hello", "versions": list(versions)}, deadline)
    if hello is None:
        return None
    theirs = numbers(hello, "versions")
    version, name = agreed(versions, theirs), name_of(number(hello, "pid"))
    if name is None:
        return None
    if version is not None and version == max(versions):
        return name, version
    end = _asked(connection, {"ask": "end"}, deadline)
    if end is None or end.get("is_ending") is True:
        return None
    if version is None:
        raise KeeperMismatched(state=str(state), ours=tuple(versions), theirs=tuple(theirs))
    return name, version


def _asked(connection: socket.socket, question: Message, deadline: float) -> Message | None:
    """Send a request during the handshake; None if the keeper disconnects."""
    try:
        send(connection, question | {"id": 0})
        while True:
            connection.settimeout(_left(deadline))
            received = receive(connection)
            if received is None or received[0].get("id") == 0:
                return None if received is None else received[0]
    except ConnectionError:
        return None


def _await_death(state: Path, deadline: float) -> None:
    while has_keeper(state):
        _pause(deadline)


def _left(deadline: float) -> float:
    """Return the seconds until the deadline; raises `TimeoutError`."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _pause(deadline: float) -> None:
    """Sleep in a worker thread between two polls."""
    time.sleep(min(_LOOK_AGAIN, _left(deadline)))  # noqa: TID251  # there is no loop to give the time to
