"""The exec-server that commands use: its address, its token, and starting the local one.

    dial ── refused ──▶ lock start.lock ──▶ dial ── refused ──▶ newer stop marker?
                                                                 │ no      │ yes
                                    spawn, wait until it listens ◀┘      └▶ LocalServerStopped

The lock serialises concurrent starts: the second holder finds the server of the first. `holdfast
stop --all` writes a stop marker before it ends a server. A client that holds an endpoint from
before the marker must not restart what the user has just ended; a client that comes later may.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import anyio
import msgspec

from holdfast.app.failures import LocalServerStopped, LocalServerUnavailable
from holdfast.app.settings import Settings, environment
from holdfast.exec.server.tokens import token_in
from holdfast.failures import Failure
from holdfast.rpc import Transport, connect_websocket
from holdfast.rpc.failures import SocketRefused
from holdfast.world import SERVICE, SystemDisk, disk_failure, make_private, replace_file

TOKEN = "token"
DETACHED_TTL = 24 * 3600  # seconds that the local server retains detached processes
IDLE_EXIT = 600  # seconds after which a local server without processes exits
_STOP_MARKER = "stopped.json"
_START_TIMEOUT_SECONDS = 60.0
_LOCK_POLL_SECONDS = 0.02
_LOG_CHARS = 300
# Referenced so that Popen.__del__ neither reaps the server nor warns that it still runs.
_STARTED: list[subprocess.Popen[bytes]] = []


class StopMarker(msgspec.Struct, frozen=True):
    """When and by which user a server was ended with all its processes."""

    at_ms: int
    user: str
    pid: int


def write_stop_markers(directories: Iterable[Path]) -> None:
    """Mark the servers of these state directories as stopped on purpose, now.

    Each call writes a different marker, so that a client can tell a later stop from an earlier one.
    """
    marker = StopMarker(time.time_ns() // 1_000_000, _user(), os.getpid())
    for directory in directories:
        if directory.is_dir():
            # A server cannot be started in a directory that is not writable either.
            with suppress(Failure):
                data = msgspec.json.encode(marker)
                replace_file(SystemDisk(), directory / _STOP_MARKER, [data])


def read_stop_marker(directory: Path) -> StopMarker | None:
    """The last stop marker in a state directory; None if it is missing or damaged."""
    try:
        return msgspec.json.decode((directory / _STOP_MARKER).read_bytes(), type=StopMarker)
    except (OSError, ValueError):  # ValueError also covers bytes that are not UTF-8
        return None


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


@dataclass(frozen=True, slots=True)
class ExecEndpoint:
    """Address and token of an exec-server; the local one has a state directory, too.

    The local server's token is a file in `state` that only its owner can read, and that no process
    in a draft can see. `stop_marker` is the marker that was there when the endpoint was made.
    """

    url: str
    token: str | None = None
    state: Path | None = None
    stop_marker: StopMarker | None = None

    async def dial(self) -> Transport:
        """Open a connection; raises SocketRefused if no server listens."""
        return await connect_websocket(self.url, token=self.token or self._own_token())

    async def dial_kept(self) -> Transport:
        """Open a connection; start the local server only if the last one left process records."""
        if self.state is not None and _has_processes(self.state):
            return await self.dial_or_start()
        return await self.dial()

    async def dial_or_start(self) -> Transport:
        """Open a connection; start the local server if it does not run.

        Raises LocalServerStopped if it was stopped on purpose after this endpoint was made.
        """
        try:
            return await self.dial()
        except SocketRefused:
            if self.state is None:
                raise
        try:
            make_private(self.state)
            with _opened(self.state / "start.lock") as lock:
                await _acquire(lock)
                return await self._started(self.state)
        except OSError as error:
            raise disk_failure(error, path=str(self.state)) from error

    def _own_token(self) -> str | None:
        path = None if self.state is None else self.state / TOKEN
        return token_in(path) if path is not None and path.exists() else None

    async def _started(self, state: Path) -> Transport:
        # The previous holder of the lock may have started the server while we waited.
        try:
            return await self.dial()
        except SocketRefused:
            self.refuse_if_stopped()
            await _start(self.url, state)
        return await self.dial()

    def refuse_if_stopped(self) -> None:
        """Raise LocalServerStopped if there is a stop marker newer than this endpoint."""
        marker = None if self.state is None else read_stop_marker(self.state)
        if marker is not None and marker != self.stop_marker:
            raise LocalServerStopped(user=marker.user, at=_time(marker))


def local_endpoint(settings: Settings) -> ExecEndpoint:
    """The endpoint of the local server, whether or not it runs."""
    state = settings.state / "exec"
    url = f"unix://{settings.runtime / 'exec.sock'}"
    return ExecEndpoint(url, state=state, stop_marker=read_stop_marker(state))


def remote_endpoint(url: str, token_file: Path | None = None) -> ExecEndpoint:
    """The endpoint of another server; `token_file` must exist."""
    return ExecEndpoint(url, token=None if token_file is None else token_in(token_file))


def _time(marker: StopMarker) -> str:
    return datetime.fromtimestamp(marker.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _has_processes(state: Path) -> bool:
    try:
        with os.scandir(state / "processes") as found:
            return any(True for _ in found)
    except OSError:
        return False


def _opened(path: Path) -> IO[bytes]:
    return path.open("ab")


async def _acquire(lock: IO[bytes]) -> None:
    # flock has no timeout, and a blocking call would hold up the event loop: poll.
    with anyio.move_on_after(_START_TIMEOUT_SECONDS):
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await anyio.sleep(_LOCK_POLL_SECONDS)
            else:
                return
    reason = "another holdfast process has been starting it for too long"
    raise LocalServerUnavailable(reason=reason)


async def _start(url: str, state: Path) -> None:
    """Start a server in a session of its own; return once it listens."""
    log = state / "server.log"
    stdout = _spawn(url, state, log)
    with stdout, anyio.move_on_after(_START_TIMEOUT_SECONDS):
        await anyio.wait_readable(stdout)
        if stdout.readline():  # empty at the end of file: the server exited
            return
    reason = log.read_text("utf-8", errors="replace").strip()[-_LOG_CHARS:]
    raise LocalServerUnavailable(reason=reason or "it gave no reason")


def _spawn(url: str, state: Path, log: Path) -> IO[bytes]:
    """Spawn a server; return its standard output, where it prints its address once it listens."""
    words = ["--listen", url, "--token-file", str(state / TOKEN), "--state", str(state)]
    words += ["--detached-ttl", str(DETACHED_TTL), "--idle-exit", str(IDLE_EXIT)]
    with open(log, "wb") as stderr:
        # -P: Python must not import modules from the current directory.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.cli.main", "exec-server", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            cwd="/",
            env={**environment(), SERVICE: "exec-server"},
            start_new_session=True,
        )
    _STARTED.append(process)
    assert process.stdout is not None
    return process.stdout
