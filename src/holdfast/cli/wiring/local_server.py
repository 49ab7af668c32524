"""Find the server that processes run on, and start the local one if nobody answers there."""

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

from holdfast.app.settings import Settings, environment
from holdfast.cli.declarations import Request
from holdfast.cli.failures import LocalServerStopped, LocalServerUnavailable, UsageWrong
from holdfast.exec.server.tokens import token_in
from holdfast.failures import Failure
from holdfast.rpc import Transport, connect_websocket
from holdfast.rpc.failures import SocketRefused
from holdfast.world import SERVICE, SystemDisk, disk_failure, make_private, replace_file

# Leave word that all was ended, for those who would start it again without being asked.

_NAME = "stopped.json"


class StopNote(msgspec.Struct, frozen=True):
    """When a server was ended with all that it kept, and by whom."""

    at_ms: int
    user: str
    pid: int


def leave_note(directories: Iterable[Path]) -> None:
    """Tell whoever works with the servers of these directories; a later word is another one."""
    note = StopNote(time.time_ns() // 1_000_000, _user(), os.getpid())
    for directory in directories:
        if directory.is_dir():
            with suppress(Failure):  # where nothing can be written, nothing can be started either
                replace_file(SystemDisk(), directory / _NAME, [msgspec.json.encode(note)])


def last_note(directory: Path) -> StopNote | None:
    """The last word that was left there, if any was."""
    try:
        return msgspec.json.decode((directory / _NAME).read_bytes(), type=StopNote)
    except (OSError, ValueError):  # it may not even be text
        return None


def _user() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


TOKEN = "token"
DETACHED_TTL = 24 * 3600  # seconds that what was left on the local server is kept
IDLE_EXIT = 600  # seconds after which a local server with nothing to keep ends
_START_LONGEST = 60.0  # one that dies is not waited for
_LOCK_PAUSE = 0.02
_LOG_CHARS = 300
_STARTED: list[subprocess.Popen[bytes]] = []  # held: nobody is to wait for them, or warn of that


@dataclass(frozen=True, slots=True)
class Server:
    """A server by its address; the local one has a directory for its state, too.

    Its token is kept there as well, where only you can read it, and nobody in a draft. `note` is
    the last word there, as we came, about an end on purpose: after a later one, nobody who was
    there before starts it again.
    """

    url: str
    token: str | None = None
    state: Path | None = None
    note: StopNote | None = None

    async def dial(self) -> Transport:
        """A new connection, or the failure that says why there is none."""
        return await connect_websocket(self.url, token=self.token or self._own_token())

    async def dial_kept(self) -> Transport:
        """A new connection; the local server is started only if the last one left processes."""
        if self.state is not None and _has_processes(self.state):
            return await self.dial_or_start()
        return await self.dial()

    async def dial_or_start(self) -> Transport:
        """A new connection; the local server is started if it does not run.

        Raises LocalServerStopped if it was ended on purpose since we came.
        """
        try:
            return await self.dial()
        except SocketRefused:
            if self.state is None:
                raise
        try:
            make_private(self.state)
            with _opened(self.state / "start.lock") as lock:
                await _locked(lock)
                return await self._started(self.state)
        except OSError as error:
            raise disk_failure(error, path=str(self.state)) from error

    def _own_token(self) -> str | None:
        path = None if self.state is None else self.state / TOKEN
        return token_in(path) if path is not None and path.exists() else None

    async def _started(self, state: Path) -> Transport:
        """One at a time: whoever came before us may have started it."""
        try:
            return await self.dial()
        except SocketRefused:
            self.refuse_if_stopped()
            await _start(self.url, state)
        return await self.dial()

    def refuse_if_stopped(self) -> None:
        """Raise LocalServerStopped if it was ended on purpose since we came."""
        note = None if self.state is None else last_note(self.state)
        if note is not None and note != self.note:
            raise LocalServerStopped(user=note.user, at=_time(note))


def server_of(request: Request, settings: Settings) -> Server:
    """The server that a request names, or the local one."""
    url, token_file = request.value("--server"), request.value("--token-file")
    if url is None:
        if token_file is not None:
            problem = "--token-file goes with --server; that of the local server is known"
            raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
        state = settings.state / "exec"
        url = f"unix://{settings.runtime / 'exec.sock'}"
        return Server(url, state=state, note=last_note(state))
    if token_file is None:
        return Server(url)
    if not Path(token_file).exists():  # else one would be made, which no server knows
        problem = f"--token-file: there is no {token_file}"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    return Server(url, token=token_in(Path(token_file)))


def _time(note: StopNote) -> str:
    return datetime.fromtimestamp(note.at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _has_processes(state: Path) -> bool:
    try:
        with os.scandir(state / "processes") as found:
            return any(True for _ in found)
    except OSError:
        return False


def _opened(path: Path) -> IO[bytes]:
    return path.open("ab")


async def _locked(lock: IO[bytes]) -> None:
    with anyio.move_on_after(_START_LONGEST):
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await anyio.sleep(_LOCK_PAUSE)
            else:
                return
    raise LocalServerUnavailable(reason="another holdfast has been starting it for too long")


async def _start(url: str, state: Path) -> None:
    """Start a server that outlives us and our terminal; return once it listens."""
    log = state / "server.log"
    said = _spawned(url, state, log)
    with said, anyio.move_on_after(_START_LONGEST):
        await anyio.wait_readable(said)
        if said.readline():
            return
    reason = log.read_text("utf-8", errors="replace").strip()[-_LOG_CHARS:]
    raise LocalServerUnavailable(reason=reason or "it did not say why")


def _spawned(url: str, state: Path, log: Path) -> IO[bytes]:
    """What a new server says: its address, once it listens."""
    words = ["--listen", url, "--token-file", str(state / TOKEN), "--state", str(state)]
    words += ["--detached-ttl", str(DETACHED_TTL), "--idle-exit", str(IDLE_EXIT)]
    with open(log, "wb") as complaints:
        # -P: what lies in the current directory is none of its modules.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.cli.main", "exec-server", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            cwd="/",
            env={**environment(), SERVICE: "exec-server"},
            start_new_session=True,
        )
    _STARTED.append(process)
    assert process.stdout is not None
    return process.stdout
