"""Start a child process in its own session, and find or kill its whole process tree.

Without `/proc` (environments and start times), a descendant that left its process group and whose
parent has exited is not found.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import anyio

from holdfast.rpc.failures import CommandNotFound, SystemExhausted
from holdfast.rpc.transports.stream_loop import READ_BYTES
from holdfast.world import (
    SystemProcess,
    environment_of,
    signal_exactly,
    system_process,
    system_processes,
)

MARK = "HOLDFAST_TREE"

_LOOK_AGAIN_FIRST, _LOOK_AGAIN_LONGEST = 0.001, 0.05
_FREEZES_MAX = 32


@dataclass(frozen=True, slots=True)
class ProcessTree:
    """A process that leads its own session, and all its descendants.

    Descendants are found by parent pid; those whose parent has exited by session; those that left
    the session too by a mark in the environment that they inherit. Valid until the root is reaped:
    after that the kernel may reuse its pid.
    """

    root: int
    started: int
    mark: str

    @classmethod
    def of(cls, root: int, mark: str) -> Self:
        """Return the tree of a process that was just started with this mark in its environment."""
        process = system_process(root) if sys.platform == "linux" else None
        return cls(root, started=process.started if process else 0, mark=mark)

    def members(self) -> list[SystemProcess]:
        """Return all living members, the root included, oldest first: parents before children."""
        recent = [process for process in system_processes() if process.started >= self.started]
        found = {process for process in recent if self._belongs(process)}
        pids = {process.pid for process in found}
        while more := {p for p in recent if p.parent in pids and p.pid not in pids}:
            found |= more
            pids |= {process.pid for process in more}
        living = [process for process in found if not process.is_dead]
        return sorted(living, key=lambda process: (process.started, process.pid))

    def terminate(self) -> None:
        """Send SIGTERM to the process group of the root."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.root, signal.SIGTERM)

    async def kill(self, *, patience: float) -> None:
        """Kill every member, and repeat until none is left or `patience` seconds have passed.

        Members are stopped first (SIGSTOP), so that none forks between being listed and being
        killed, and no supervisor restarts another.
        """
        wait = _LOOK_AGAIN_FIRST
        with anyio.move_on_after(patience):
            while members := self._freeze():
                for process in members:
                    signal_exactly(process, signal.SIGKILL)
                await anyio.sleep(wait)
                wait = min(2 * wait, _LOOK_AGAIN_LONGEST)

    def _freeze(self) -> list[SystemProcess]:
        frozen: set[int] = set()
        members = self.members()
        for _ in range(_FREEZES_MAX):
            new = [process for process in members if process.pid not in frozen]
            if not new:
                break
            for process in new:
                signal_exactly(process, signal.SIGSTOP)
                frozen.add(process.pid)
            members = self.members()
        return members

    def _belongs(self, process: SystemProcess) -> bool:
        return self.root in (process.pid, process.session, process.group) or (
            not process.is_dead and self._is_marked(process)
        )

    def _is_marked(self, process: SystemProcess) -> bool:
        mark = self.mark.encode()
        return any(mark in variable for variable in environment_of(process.pid))


def marked(environment: Mapping[str, str], mark: str) -> dict[str, str]:
    """Return the environment with a mark that all descendants inherit; marks of others stay."""
    return {**environment, MARK: f"{environment.get(MARK, '')}:{mark}".removeprefix(":")}


_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCommand:
    """Command line, working directory and the complete environment: nothing is inherited."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipes:
    """Our ends of the pipes of a child."""

    stdin: int
    stdout: int
    stderr: int


@contextmanager
def started_process(
    command: ChildCommand, mark: str
) -> Generator[tuple[subprocess.Popen[bytes], Pipes]]:
    """Start a process; yields it with our ends of its pipes. If the block raises, it is killed."""
    with ExitStack() as ours:
        try:
            process, pipes = _start(command, marked(command.env, mark), ours)
            ours.callback(process.wait)
            ours.callback(process.kill)
            yield process, pipes
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            if error.errno in _EXHAUSTED:
                raise SystemExhausted(reason=reason) from error
            raise CommandNotFound(command=command.argv[0], reason=reason) from error
        ours.pop_all()


def _start(
    command: ChildCommand, env: Mapping[str, str], ours: ExitStack
) -> tuple[subprocess.Popen[bytes], Pipes]:
    argv = [*_death_signal_command(), _executable(command), *command.argv[1:]]
    with ExitStack() as theirs:
        stdin, our_stdin = _pipe(theirs, ours)
        our_stdout, stdout = _pipe(ours, theirs)
        our_stderr, stderr = _pipe(ours, theirs)
        _enlarge(our_stdout)
        process = subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=command.cwd,
            env=env,
            start_new_session=True,
        )
    return process, Pipes(stdin=our_stdin, stdout=our_stdout, stderr=our_stderr)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read_fd, write_fd = os.pipe()
    reader.callback(os.close, read_fd)
    writer.callback(os.close, write_fd)
    return read_fd, write_fd


def _enlarge(fd: int) -> None:
    """Set the pipe buffer to the size of one read; past the user's pipe quota the default stays."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, READ_BYTES)


def _executable(command: ChildCommand) -> str:
    """Return the path of the executable; raises `CommandNotFound` if it is missing.

    Checked here because `setpriv`, which executes it, could only report that by its exit status.
    """
    name = command.argv[0]
    if "\0" in "".join((*command.argv, command.cwd, *command.env, *command.env.values())):
        raise CommandNotFound(command=name, reason="it contains a NUL character")
    if not Path(command.cwd).is_dir():
        raise CommandNotFound(command=name, reason=f"{command.cwd} is no directory")
    places = [""] if "/" in name else os.get_exec_path(command.env)
    files = [file for place in places if (file := Path(command.cwd, place, name)).is_file()]
    for file in files:
        if os.access(file, os.X_OK):
            return str(file)
    reason = "it is not executable" if files else "it does not exist"
    raise CommandNotFound(command=name, reason=reason)


def _death_signal_command() -> list[str]:
    """Return the command prefix that makes the kernel kill the child when we die
    (PR_SET_PDEATHSIG).

    `setpriv` sets the signal and executes the command. Doing it between fork and exec would copy
    our address space and run Python while other threads may hold locks.
    """
    setpriv = shutil.which("setpriv", path=_SYSTEM_PATH) if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
