"""Make a place and leave it in the hands of one process that does nothing else.

A process leaves our namespaces; another, born in the new one of processes as its number 1, covers
the project and waits for our word; then it becomes a program that sleeps. While it lives, the
place does; when it dies, the kernel kills everyone inside and nothing stays mounted. Until our word
it ends by itself if we do. Only the standard library is imported: where there are threads, all this
is done by a small interpreter of its own.

Decision: docs/decisions/0066-place-with-one-holder.md
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, NoReturn

import holdfast.confine.kernel as kernel
from holdfast.confine.model import PlaceSpec, PlaceStep
from holdfast.confine.place import id_mapping as mapping

MARK: Final = "HOLDFAST_PLACE"
LOCK_TARGET: Final = 3

_PATIENCE: Final = 10.0
_UNSHARED, _MAPPED, _READY, _GO, _FAILED = b"u", b"m", b"r", b"g", b"!"
_CREDENTIALS: Final = struct.Struct("=iII")
_SLEEPERS: Final = ("/usr/bin/sleep", "/bin/sleep")
_FOREVER: Final = str(2**31 - 1)  # seconds; not every `sleep` knows infinity
_UNSEEN: Final = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
_PLAIN: Final = kernel.MS_NOSUID | kernel.MS_NODEV


class PlaceStepRefused(Exception):
    """The kernel refused a step with an errno; 0 if the process for the step ended instead."""

    def __init__(self, step: PlaceStep, number: int) -> None:
        super().__init__(step, number)
        self.step, self.number = step, number


class Holding:
    """A place that is whole, and whose holder waits for our word."""

    def __init__(self, pid: int, ours: socket.socket) -> None:
        self.pid = pid
        self._ours = ours

    def confirm(self) -> None:
        """Let it hold the place from now on, whatever becomes of us."""
        _tell(self._ours, _GO, PlaceStep.PROGRAM)
        _heard(self._ours, b"", PlaceStep.PROGRAM)


@contextmanager
def prepared(spec: PlaceSpec, lock: int, mark: str) -> Generator[Holding]:
    """A place that ends with this block unless it was confirmed; raises `Refused`.

    The holder keeps `lock` open for as long as it lives, and has `mark` in its environment. May
    be entered only where there is one thread.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        ours.settimeout(_PATIENCE)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        between = os.fork()
        if between == 0:
            ours.close()
            _between(spec, lock, mark, theirs)
        theirs.close()
        try:
            _heard(ours, _UNSHARED, PlaceStep.NAMESPACES)
            _map(between)
            _tell(ours, _MAPPED, PlaceStep.NAMESPACES)
            yield Holding(_heard(ours, _READY, PlaceStep.OVERLAY), ours)
        finally:
            ours.close()
            os.waitpid(between, 0)


def main() -> None:
    """Make the place described on standard input, in a process with one thread."""
    kernel.die_with_parent(signal.SIGKILL)
    order = json.loads(sys.stdin.readline())
    said = order["spec"]
    spec = PlaceSpec(
        directory=said["directory"],
        project=said["project"],
        also=tuple(said["also"]),
        hidden=tuple(said["hidden"]),
    )
    try:
        with prepared(spec, order["lock"], order["mark"]) as holding:
            _say({"pid": holding.pid})
            if sys.stdin.readline():
                holding.confirm()
                _say({})
    except PlaceStepRefused as refused:
        _say({"step": refused.step, "number": refused.number})


def _say(what: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def _tell(ours: socket.socket, word: bytes, step: PlaceStep) -> None:
    try:
        ours.send(word)
    except OSError as error:  # the other process has ended
        raise PlaceStepRefused(step, 0) from error


def _heard(ours: socket.socket, expected: bytes, step: PlaceStep) -> int:
    """The number of the one who says what is expected; anything else is a refusal."""
    try:
        said, more, _, _ = ours.recvmsg(64, socket.CMSG_SPACE(_CREDENTIALS.size))
    except TimeoutError as error:
        raise PlaceStepRefused(step, errno.ETIMEDOUT) from error
    if said.startswith(_FAILED):
        refused, number = said[1:].decode("ascii").split()
        raise PlaceStepRefused(PlaceStep(refused), int(number))
    if said != expected:
        raise PlaceStepRefused(step, 0)
    return _CREDENTIALS.unpack(more[0][2])[0] if said else 0


def _map(pid: int) -> None:
    try:
        if os.geteuid() == 0:
            with suppress(PermissionError):  # a root that may not speak for others
                for kind, own in (("uid", os.geteuid()), ("gid", os.getegid())):
                    _write(pid, f"{kind}_map", mapping.written(_wide(kind, own)))
                return
        _write(pid, "setgroups", "deny")
        _write(pid, "uid_map", mapping.written(mapping.narrow(os.geteuid())))
        _write(pid, "gid_map", mapping.written(mapping.narrow(os.getegid())))
    except OSError as error:
        raise PlaceStepRefused(PlaceStep.MAPS, error.errno or 0) from error


def _wide(kind: str, own: int) -> Sequence[mapping.Extent]:
    with open(f"/proc/self/{kind}_map", encoding="ascii") as known:
        return mapping.wide(own, mapping.known_in(known.read()))


def _write(pid: int, name: str, text: str) -> None:
    with open(f"/proc/{pid}/{name}", "wb", buffering=0) as file:
        file.write(text.encode("ascii"))


def _between(spec: PlaceSpec, lock: int, mark: str, theirs: socket.socket) -> NoReturn:
    """Leave the namespaces, and bear the one who will hold the new ones."""
    step = PlaceStep.NAMESPACES
    try:
        os.setsid()
        kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)
        theirs.send(_UNSHARED)
        if theirs.recv(1) == _MAPPED and os.fork() == 0:
            kernel.mount(None, b"/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
            step = PlaceStep.OVERLAY
            _cover(spec)
            step = PlaceStep.HIDING
            for directory in (spec.directory, *spec.hidden):
                kernel.mount(
                    b"tmpfs",
                    os.fsencode(directory),
                    b"tmpfs",
                    flags=_UNSEEN,
                    options=b"mode=0,size=4k",
                )
            step = PlaceStep.PROC
            kernel.mount(b"proc", b"/proc", b"proc", flags=_PLAIN | kernel.MS_NOEXEC)
            step = PlaceStep.PROGRAM
            theirs.send(_READY)
            if theirs.recv(1) == _GO:
                _sleep(lock, mark, theirs)
    except OSError as error:
        with suppress(OSError):
            theirs.send(_FAILED + f"{step} {error.errno or errno.EIO}".encode("ascii"))
    finally:
        os._exit(0)


def _cover(spec: PlaceSpec) -> None:
    """Lay each draft over its directory; by descriptor, because a name may hold anything."""
    below = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in spec.covered]
    for number, lower in enumerate(below):
        upper, work = (
            os.open(path, os.O_PATH | os.O_DIRECTORY) for path in layers(spec.directory, number)
        )
        options = (
            f"lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{upper},"
            f"workdir=/proc/self/fd/{work},userxattr"
        )
        target = b"/proc/self/fd/%d" % lower
        kernel.mount(b"holdfast", target, b"overlay", flags=_PLAIN, options=options.encode("ascii"))


def layers(directory: str, number: int) -> tuple[str, str]:
    """Where the draft keeps what is written to a covered directory, and where the kernel works."""
    ending = f"-{number}" if number else ""
    return os.path.join(directory, f"upper{ending}"), os.path.join(directory, f"work{ending}")


def _sleep(lock: int, mark: str, theirs: socket.socket) -> None:
    """Become the holder: a program with nothing of ours but the lock."""
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    above = LOCK_TARGET + 1  # out of the way of the targets, so that nothing is overwritten
    null, lock, last = (
        fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, above) for each in (null, lock, theirs.fileno())
    )
    for target in range(LOCK_TARGET):
        os.dup2(null, target)
    os.dup2(lock, LOCK_TARGET)
    kernel.close_between(above, last - 1)
    kernel.close_between(last + 1, 2**31 - 1)
    # The init of a pid namespace adopts orphans; with SIGCHLD ignored the kernel reaps them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    kernel.stand_apart()
    program = next((each for each in _SLEEPERS if os.path.exists(each)), _SLEEPERS[0])
    os.execve(program, ["sleep", _FOREVER], {MARK: mark})
