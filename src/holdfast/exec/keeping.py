"""Find the living keeper of a state directory or start one, and agree on a version.

Whoever holds the lock of the directory is its server and may do this; so two servers never start
two keepers. The keeper holds a lock of its own for as long as it lives.
"""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from holdfast.exec.failures import KeeperMismatched, KeeperUnavailable, StateTaken
from holdfast.exec.keeper.protocol import (
    LOCK_NAME,
    LOG_NAME,
    SOCKET_NAME,
    VERSIONS,
    Malformed,
    Message,
    agreed,
    number,
    numbers,
    receive,
    send,
)

SERVER_LOCK_NAME = "server.lock"

_ANSWER_LONGEST = 10.0
_LOOK_AGAIN = 0.005
# The faces of our rooms would load the whole program; the keeper gets along with its own package.
_BOOT = """
import sys, types
for name, path in (("holdfast", sys.argv[1]), ("holdfast.exec", sys.argv[1] + "/exec")):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [path]
from holdfast.exec.keeper.serving import main
sys.exit(main(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summoned:
    """A keeper that has said hello: a connection to it, who it is, and what both speak."""

    connection: socket.socket
    pid: int
    version: int
    was_there: bool


def lock_state(state: Path) -> int:
    """A descriptor that makes us the only server of a directory for as long as it is open."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _opened_lock(state / SERVER_LOCK_NAME)
    if lock is None:
        raise StateTaken(state=str(state))
    return lock


def summon(state: Path, *, versions: Sequence[int] = VERSIONS) -> Summoned:
    """The keeper of a directory that we have locked; a new one if none lives there.

    One that speaks no version of ours is replaced if it holds nothing, and left alone otherwise.
    """
    if sys.platform != "linux":
        reason = "this system cannot move output into files by itself, so nothing would be safe"
        raise KeeperUnavailable(state=str(state), reason=reason)
    connection = _dialled(state)
    was_there = connection is not None
    for _ in range(2):
        with ExitStack() as undone:
            connection = undone.enter_context(connection or _started(state))
            hello = _asked(state, connection, {"ask": "hello", "versions": list(versions)})
            theirs = numbers(hello, "versions")
            version = agreed(versions, theirs)
            if version is not None:
                connection.setblocking(False)
                pid = number(hello, "pid")
                undone.pop_all()
                return Summoned(
                    connection=connection, pid=pid, version=version, was_there=was_there
                )
            if not _asked(state, connection, {"ask": "end"}).get("is_ending"):
                raise KeeperMismatched(state=str(state), ours=tuple(versions), theirs=tuple(theirs))
        connection, was_there = None, False
        _await_death(state)
    raise KeeperUnavailable(state=str(state), reason="the new one speaks another version")


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


def _dialled(state: Path) -> socket.socket | None:
    """A connection to the keeper that lives here; one that is just starting is waited for."""
    deadline = time.monotonic() + _ANSWER_LONGEST
    while has_keeper(state):
        if (connection := _connected(state)) is not None:
            return connection
        if time.monotonic() > deadline:
            raise KeeperUnavailable(state=str(state), reason="it lives, but does not listen")
        _pause()
    return None


def _connected(state: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(_ANSWER_LONGEST)
    directory = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{directory}/{SOCKET_NAME}")  # for a path of any length
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    finally:
        os.close(directory)
    return connection


def _started(state: Path) -> socket.socket:
    """A connection to a new keeper, which is nobody's child and leads a session of its own."""
    ours = str(Path(__file__).resolve().parents[1])
    # -I -S: nothing of the user's and nothing that is installed; what it needs, it has.
    command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, ours, str(state.resolve())]
    with open(state / LOG_NAME, "ab") as log:
        ended = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={},
            check=False,
            timeout=_ANSWER_LONGEST,
        )
    # One that a server started just before it died may have been faster.
    connection = _connected(state) if ended.returncode == 0 else _dialled(state)
    if connection is None:
        reason = f"it ended with status {ended.returncode}; see {state / LOG_NAME}"
        raise KeeperUnavailable(state=str(state), reason=reason)
    return connection


def _asked(state: Path, connection: socket.socket, question: Message) -> Message:
    """The answer of a keeper that we speak with for the first time."""
    try:
        send(connection, question | {"id": 0})
        while (received := receive(connection)) is not None:
            if received[0].get("id") == 0:
                return received[0]
    except (OSError, Malformed) as error:
        raise KeeperUnavailable(state=str(state), reason=str(error)) from error
    raise KeeperUnavailable(state=str(state), reason="it hung up")


def _await_death(state: Path) -> None:
    deadline = time.monotonic() + _ANSWER_LONGEST
    while has_keeper(state):
        if time.monotonic() > deadline:
            raise KeeperUnavailable(state=str(state), reason="the old one does not end")
        _pause()


def _pause() -> None:
    """Wait a moment; nothing else runs yet in a server that is looking for its keeper."""
    time.sleep(_LOOK_AGAIN)  # noqa: TID251  # there is no loop to give the time to
