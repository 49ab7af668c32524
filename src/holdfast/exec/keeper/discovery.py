"""Find the living keeper of a state directory or start one, and agree on a version.

Whoever holds the lock of the directory is its server and may do this; so two servers never start
two keepers. The keeper holds a lock of its own for as long as it lives.

Find processes anywhere on the machine by the mark of their keeper, and end them.

The mark is in the environment, which all descendants inherit, and says whose process it is and
which keeper held it; `world.process_marks` says what else belongs to it. What has another
environment is told by its limit number, which ends in the tag of the keeper. Only Linux shows the
environments of others; elsewhere nobody is found.
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

SESSION_MARK = "HOLDFAST_EXEC_SESSION"  # in the environment of a process: its session's id
_MARK = MARK.encode() + b"="
_SESSION = SESSION_MARK.encode() + b"="


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedProcess:
    """A living process that carries a mark: whose it is, and which keeper held it."""

    process: SystemProcess
    key: str
    keeper: KeeperName
    command: str
    session: str = ""  # of the server, where that is known


def orphans() -> list[MarkedProcess]:
    """Every marked process whose keeper is gone, as far as we may look at it.

    Processes of keepers in other process namespaces are not judged: we cannot see those keepers.
    """
    found = list(_marked())
    here = namespace_of(os.getpid()) if found else None
    return [each for each in found if each.keeper.namespace == here and is_gone(each.keeper)]


def kill(found: Collection[MarkedProcess]) -> int:
    """Kill exactly these processes, and nobody who was given one of their numbers since."""
    return sum(signal_exactly(each.process, signal.SIGKILL) for each in found)


def kill_held(keeper: KeeperName) -> list[MarkedProcess]:
    """Kill all that this keeper held, and all that they started, until none is left."""
    found = [each for each in _marked() if each.keeper == keeper]

    def is_held(process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[1] == keeper or _has_tag(process.pid, keeper)

    end_members(is_held)
    return found


def end_started(keys: Collection[str], numbers: Collection[int] = ()) -> SweepResult:
    """End the processes of these keys, and all that they have started; blocks.

    `numbers` are the limit numbers of these processes, as far as they are known.
    """

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return _mark_of(environment)[0] in keys

    return end_members(is_started, numbers=numbers)


def end_session(session: str, numbers: Collection[int] = ()) -> SweepResult:
    """The same for all processes of one session of a server."""
    mark = _SESSION + session.encode()

    def is_started(_process: SystemProcess, environment: Sequence[bytes]) -> bool:
        return mark in environment

    return end_members(is_started, numbers=numbers)


class DetachedChild(NamedTuple):
    """A living process that was left running: by which process, of which session."""

    process: SystemProcess
    key: str
    session: str
    command: str


def detached(
    sessions: Collection[str], roots: Collection[int], numbers: Mapping[int, tuple[str, str]]
) -> list[DetachedChild]:
    """What processes of these sessions have started, and has outlived the one that started it.

    `roots` are the processes of the sessions themselves, `numbers` have key and session of each
    limit number. What has a parent of the same key is not listed: it is part of what runs there.
    Nor are services of ours.
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
    """The name of a keeper that lives; None if it does not."""
    process, namespace = system_process(pid), namespace_of(pid)
    if process is None or process.is_dead or namespace is None:
        return None
    return KeeperName(pid, process.started, namespace)


def is_gone(keeper: KeeperName) -> bool:
    """Whether a keeper of our own process namespace no longer lives."""
    process = system_process(keeper.pid)
    return process is None or process.is_dead or process.started != keeper.started


def namespace_of(pid: int) -> int | None:
    """Which process namespace a process is in; None if it is gone or is not ours to see."""
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
    """The key and the keeper that a mark names; nothing where there is none."""
    mark = next((item for item in environment if item.startswith(_MARK)), b"")
    key, _, keeper = os.fsdecode(mark.removeprefix(_MARK)).rpartition("@")
    named = KeeperName.parse(keeper)
    return ("", None) if named is None else (key, named)


SERVER_LOCK_NAME = "server.lock"

_ANSWER_LONGEST = 10.0
_LOOK_AGAIN = 0.005
_TRIES_MAX = 3
# The keeper gets along with its own package, and does not load the face of our room.
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
    """A keeper that has said hello: a connection to it, who it is, and what both speak.

    `orphans` had outlived the keeper before it, and have been killed.
    """

    connection: socket.socket
    name: KeeperName
    version: int
    was_there: bool
    orphans: list[MarkedProcess]


def lock_state(state: Path) -> int:
    """A descriptor that makes us the only server of a directory for as long as it is open."""
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
    """The keeper of a directory that we have locked; a new one if none lives there.

    What that starts may have so many `open_files`, or as many as we. One that speaks no version
    of ours is replaced if it holds nothing, and left alone otherwise. If the last one was lost,
    what has outlived it is killed first.
    """
    if sys.platform != "linux":
        reason = "this system cannot move output into files by itself, so nothing would be safe"
        raise KeeperUnavailable(state=str(state), reason=reason)
    deadline = time.monotonic() + patience
    orphans: list[MarkedProcess] = []
    try:
        for _ in range(_TRIES_MAX):  # it may end, for want of work, in the moment we come
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
    """Whether a keeper of this directory lives."""
    lock = _opened_lock(state / LOCK_NAME)
    if lock is not None:
        os.close(lock)
    return lock is None


def _opened_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, or None while another process does."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _reaped(state: Path) -> list[MarkedProcess]:
    """Kill what has outlived a keeper that was lost; one that ended in good order left nothing."""
    name = KeeperName.parse((state / LOCK_NAME).read_text("ascii", errors="replace"))
    # Whoever copied the directory copied the name of a keeper that may live and is not ours.
    if name is None or name.namespace != namespace_of(os.getpid()) or not is_gone(name):
        return []
    return kill_held(name)


def _dialled(state: Path, deadline: float) -> socket.socket | None:
    """A connection to the keeper that lives here; one that is just starting is waited for."""
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
    """A connection to a new keeper, which is nobody's child and leads a session of its own."""
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
    """Who a keeper is and what both of us speak; None if it ends, by itself or for our sake.

    One that does not speak our newest version is kept only while it holds something.
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
    """The answer of a keeper that we speak with for the first time; None if it hangs up."""
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
    """The time that is left; raises `TimeoutError` if there is none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _pause(deadline: float) -> None:
    """Wait a moment, in a thread that does nothing else."""
    time.sleep(min(_LOOK_AGAIN, _left(deadline)))  # noqa: TID251  # there is no loop to give the time to
