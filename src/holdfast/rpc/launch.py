"""Start a process in a session of its own, with pipes to it and nothing else of ours."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.rpc.failures import CommandNotFound, SystemExhausted
from holdfast.rpc.process_tree import marked
from holdfast.rpc.reader_loop import READ_BYTES

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
_SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run, where, and with which environment: all of it, for nothing is inherited."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipes:
    """Our ends of the pipes to a process."""

    stdin: int
    stdout: int
    stderr: int


@contextmanager
def launched(command: Command, mark: str) -> Generator[tuple[subprocess.Popen[bytes], Pipes]]:
    """Start a process and hand it over with our ends of its pipes; undo both if that fails."""
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
    command: Command, env: Mapping[str, str], ours: ExitStack
) -> tuple[subprocess.Popen[bytes], Pipes]:
    argv = [*_dying_with_us(), _located(command), *command.argv[1:]]
    with ExitStack() as theirs:
        stdin, our_stdin = _pipe(theirs, ours)
        our_stdout, stdout = _pipe(ours, theirs)
        our_stderr, stderr = _pipe(ours, theirs)
        _widen(our_stdout)
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


def _widen(fd: int) -> None:
    """Let a pipe hold what one read takes; a user who has used up their share keeps the default."""
    if sys.platform == "linux":
        with suppress(PermissionError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, READ_BYTES)


def _located(command: Command) -> str:
    """The file that the command names, which must be there and executable.

    Checked here because the program that starts it for us could only say so by its exit status.
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


def _dying_with_us() -> list[str]:
    """What to put before a command so that the kernel kills it when we die, where that exists.

    A tiny program sets the signal and becomes the command. Doing the same between fork and exec
    would need a copy of our whole address space and run our code where locks may be held.
    """
    setpriv = shutil.which("setpriv", path=_SYSTEM_PATH) if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []
