"""Report which paths a sandbox denied, using a seccomp user notification listener.

The kernel notifies a watcher process of each system call that names a path. The watcher compares
the path inside and outside of the sandbox and lets the call continue
(SECCOMP_USER_NOTIF_FLAG_CONTINUE): it enforces nothing, so a wrong guess only makes the report
wrong. Calls are ignored until the start gate opens, because bubblewrap itself makes them.
"""

from __future__ import annotations

import fcntl
import os
import platform
import select
import signal
import socket
import stat
from contextlib import suppress
from dataclasses import replace
from typing import Final, NoReturn, Self

import msgspec

import holdfast.confine.kernel as kernel
from holdfast.confine.entry import ProcessEntry
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.filesystem import read_back, spelled
from holdfast.confine.sandbox.seccomp import (
    GO_ON,
    HERE,
    NOTICE,
    PATH_BYTES_MAX,
    REPLY,
    PathAccess,
    PathRefusal,
    PathSyscall,
    Refusals,
    calls_of,
    directory_of,
    has_listeners,
    is_ours_to_tell,
    verdict,
    watching_program,
)
from holdfast.world import open_in_root

_RECEIVE, _SEND, _IS_VALID = 0xC050_2100, 0xC018_2101, 0x4008_2102
_TELLING_LONGEST: Final = 5.0  # seconds, after the last process has ended
_BEGIN, _MAKER = b"begin", "bwrap"
_LOOK: Final = getattr(os, "O_PATH", 0)
_DEAF_TO: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class DenialReport(msgspec.Struct, frozen=True):
    """What was noticed: paths, and how many more there were than can be told."""

    refusals: tuple[PathRefusal, ...] = ()
    untold: int = 0


class DenialWatcher:
    """One watcher of one sandbox; it ends with the last process that it watches, or with us.

    May be made only where there is one thread: it forks. Raises SandboxFailed where the kernel is
    too old to let calls go on.
    """

    def __init__(self) -> None:
        if not has_listeners(platform.release()):
            raise SandboxFailed(reason="this kernel does not tell what a process tries")
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._hears, tells = os.pipe2(os.O_CLOEXEC)
        self._theirs, watcher = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if self._pid == 0:
            _watch(theirs, watcher, tells)
        theirs.close()
        watcher.close()
        os.close(tells)

    def watched(self, entry: ProcessEntry) -> ProcessEntry:
        """The same entry with a listener for the system calls of its process."""
        number = max((2, *entry.files.values())) + 1
        return replace(
            entry,
            files={**entry.files, self._theirs.fileno(): number},
            watch=watching_program(platform.machine()),
            watcher=number,
        )

    def begin(self) -> None:
        """Record from now on: processes other than bubblewrap are the command."""
        self._theirs.close()
        self._ours.send(_BEGIN)

    def told(self) -> DenialReport:
        """All that was noticed, when everyone has ended."""
        said = b""
        while select.select([self._hears], [], [], _TELLING_LONGEST)[0]:
            piece = os.read(self._hears, 65536)
            if not piece:
                break
            said += piece
        try:
            return read_back(said, DenialReport)
        except ValueError:  # it was killed
            return DenialReport()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the watcher, if it has not ended by itself."""
        self._theirs.close()
        self._ours.close()
        os.close(self._hears)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _watch(control: socket.socket, entrance: socket.socket, tells: int) -> NoReturn:
    """Be the watcher."""
    try:
        kernel.die_with_parent(signal.SIGKILL)
        os.setsid()
        for number in _DEAF_TO:  # they are meant for the command, and for who started us
            signal.signal(number, signal.SIG_IGN)
        kept = sorted((control.fileno(), entrance.fileno(), tells))
        for first, last in zip([-1, *kept], [*kept, 2**31 - 1], strict=True):
            kernel.close_between(first + 1, last - 1)
        _, listeners, _, _ = socket.recv_fds(entrance, 1, 1)
        if listeners:
            watcher = _Watcher(listeners[0], control)
            watcher.run()
            told = DenialReport(tuple(watcher.refusals), watcher.refusals.untold)
            with open(tells, "wb") as words:
                words.write(spelled(told))
    finally:
        os._exit(0)


class _Watcher:
    """Hears of calls, and lets them go on."""

    def __init__(self, listener: int, control: socket.socket) -> None:
        self.refusals = Refusals()
        self._listener, self._control = listener, control
        self._calls = calls_of(platform.machine())
        self._is_begun = False
        self._root: int | None = None

    def run(self) -> None:
        """Handle notifications until the last watched process has ended."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while poll.poll()[0][1] & select.POLLIN:
            notice = bytearray(NOTICE.size)
            try:
                fcntl.ioctl(self._listener, _RECEIVE, notice)
            except OSError:  # the calling process was killed meanwhile
                continue
            number, pid, _, call, _, _, *arguments = NOTICE.unpack(notice)
            try:
                if self._is_inside(pid):
                    self._note(number, pid, self._calls[call], arguments)
            except (OSError, UnicodeDecodeError):
                pass  # it is gone, or names what is no path: the kernel will tell it so
            finally:
                with suppress(OSError):
                    fcntl.ioctl(self._listener, _SEND, REPLY.pack(number, 0, 0, GO_ON))

    def _is_inside(self, pid: int) -> bool:
        """Whether this is the command or one of its children, which all have the same root."""
        if not self._is_begun and select.select([self._control], [], [], 0)[0]:
            self._is_begun = self._control.recv(len(_BEGIN)) == _BEGIN
        if not self._is_begun:
            return False
        if self._root is None and os.path.basename(os.readlink(f"/proc/{pid}/exe")) != _MAKER:
            self._root = os.open(f"/proc/{pid}/root", _LOOK | os.O_DIRECTORY)
        return self._root is not None

    def _note(self, number: int, pid: int, call: PathSyscall, arguments: list[int]) -> None:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            paths = [
                (directory, os.fsdecode(_text_at(memory.fileno(), arguments[position])))
                for directory, position in call.paths
            ]
            flags = 0 if call.flags is None else arguments[call.flags]
            if call.has_flags_in_memory:
                flags = int.from_bytes(os.pread(memory.fileno(), 8, flags), "little")
        fcntl.ioctl(self._listener, _IS_VALID, number.to_bytes(8, "little"))
        for directory, path in paths:
            if not path.startswith("/"):
                start = HERE if directory is None else directory_of(arguments[directory])
                base = "cwd" if start == HERE else f"fd/{start}"
                path = f"{os.readlink(f'/proc/{pid}/{base}')}/{path}"
            self._judge(call, flags, os.path.normpath(path))

    def _judge(self, call: PathSyscall, flags: int, path: str) -> None:
        if not is_ours_to_tell(path):
            return
        around = os.path.dirname(path)
        if not os.path.lexists(path) and os.path.lexists(around) and not self._is_there(around):
            path = around  # what is to be made is not missed, but where
        why = verdict(call.wish, flags, self._found(path))
        if why is not None:
            self.refusals.add(path, why)

    def _is_there(self, path: str) -> bool:
        opened = self._opened(path)
        if opened is not None:
            os.close(opened)
        return opened is not None

    def _found(self, path: str) -> PathAccess:
        above: str = path
        while (opened := self._opened(above)) is None:
            if above == "/":
                raise FileNotFoundError(path)  # everyone inside has ended
            above = os.path.dirname(above)
        try:
            mode = os.fstat(opened).st_mode
            is_read_only = bool(os.fstatvfs(opened).f_flag & os.ST_RDONLY)
        finally:
            os.close(opened)
        is_plain = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
        return PathAccess(above == path, os.path.lexists(path), is_read_only, is_plain)

    def _opened(self, path: str) -> int | None:
        """Something inside, itself and not what it leads to."""
        assert self._root is not None
        try:
            return open_in_root(self._root, os.fsencode(path), _LOOK | os.O_NOFOLLOW, 0)
        except OSError:
            return None


def _text_at(memory: int, address: int) -> bytes:
    """The text at an address, which may lie just before what cannot be read."""
    try:
        found = os.pread(memory, PATH_BYTES_MAX, address)
    except OSError:
        found = os.pread(memory, -address % os.sysconf("SC_PAGE_SIZE"), address)
    return found.partition(b"\0")[0]
