"""Start one child process with pipes or a terminal, and hold our ends of its descriptors.

`posix_spawn` is the fastest way to start a process, and runs no code of ours in it. What it cannot
set, the keeper sets on itself for that moment, which is safe because it has one thread: the working
directory, the soft limit of open files, and the limit number (`world.process_marks`) that marks all
descendants. Only a child that enters a place or a sandbox is forked instead.
"""

from __future__ import annotations

import base64
import binascii
import errno
import fcntl
import os
import resource
import signal
import stat
import struct
import termios
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from holdfast.confine import Fence, ProcessEntry, enter
from holdfast.exec.keeper.protocol import (
    MARK,
    TAG_BITS,
    KeeperName,
    MalformedPacket,
    Message,
    mapping,
    number,
    numbers,
    text,
    texts,
)

_SHELL = "/bin/sh"


class EntrySpec:
    """Decoded `entry` of a start request: namespaces, control groups, and descriptors to pass on.

    The descriptors arrive with the message in that order.
    """

    def __init__(self, message: Message, descriptors: Sequence[int]) -> None:
        namespaces, groups = number(message, "namespaces"), number(message, "groups")
        carried = numbers(message, "carried")
        counts = (namespaces, groups, len(carried))
        # They were sent, and did not all find room here.
        if len(descriptors) < sum(counts):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        if min(counts) < 0 or sum(counts) != len(descriptors):
            raise MalformedPacket("there are other descriptors than the way in needs")
        if len(set(carried)) != len(carried) or any(target < 3 for target in carried):
            raise MalformedPacket("no descriptor can be carried there")
        self._is_led = message.get("is_led") is True
        self._carried = dict(zip(descriptors[namespaces + groups :], carried, strict=True))
        self._entry = ProcessEntry(
            argv=(),
            env={},
            cwd="/",
            program=text(message, "program"),
            namespaces=tuple(descriptors[:namespaces]),
            groups=tuple(descriptors[namespaces : namespaces + groups]),
            limits=_limits(message),
            is_unprivileged=message.get("is_unprivileged") is True,
            fence=_fence(message),
            filter=_bytes(message, "filter"),
            shields=texts(message, "shields"),
        )

    @property
    def leads_to_place(self) -> bool:
        """Whether it enters namespaces that a place holder owns."""
        return bool(self._entry.namespaces)

    def start(
        self, argv: list[str], env: Mapping[str, str], cwd: str, ends: Mapping[int, int]
    ) -> int:
        """Fork a child that enters, with these descriptors as its first; returns its pid."""
        files = {os.dup(end): target for target, end in ends.items()}
        try:
            # The session leader gets the controlling terminal; in a sandbox that is another
            # process.
            has_terminal = os.isatty(ends[0]) and not self._is_led
            entry = replace(
                self._entry,
                argv=argv,
                env=env,
                cwd=cwd,
                files={**files, **self._carried},
                is_terminal=has_terminal,
            )
            try:
                return enter(entry)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                words = [_SHELL, entry.program, *argv[1:]]
                return enter(replace(entry, argv=words, program=_SHELL))
        finally:
            for end in files:
                os.close(end)


def _limits(message: Message) -> tuple[tuple[int, int], ...]:
    pairs = numbers(message, "limits")
    return tuple(zip(pairs[::2], pairs[1::2], strict=False))


def _fence(message: Message) -> Fence | None:
    if message.get("fence") is None:
        return None
    fence = mapping(message, "fence")
    paths, rights = texts(fence, "paths"), numbers(fence, "rights")
    if len(paths) != len(rights):
        raise MalformedPacket("a fence must say what is granted at each path")
    return Fence(
        files=number(fence, "files"),
        network=number(fence, "network"),
        scopes=number(fence, "scopes"),
        grants=tuple(zip(paths, rights, strict=True)),
    )


def _bytes(message: Message, name: str) -> bytes:
    try:
        return base64.b64decode(text(message, name), validate=True)
    except binascii.Error as error:
        raise MalformedPacket(f"{name} is not base64") from error


GIVEN_LIMIT = resource.getrlimit(resource.RLIMIT_NOFILE)

# By Python, and by ourselves.
_TAMPERED = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP}
# What we ignore would be ignored by a child; what we handle, its start resets by itself.
_IGNORED = _TAMPERED | {
    number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN
}
_SIZE_MAX = 2**16 - 1
# A process can only be given descriptors whose numbers are below its own limit. So these numbers
# are left to such, however many descriptors we hold.
_LOW_NUMBERS = 128
# Limit numbers only fall: what has no privileges cannot raise a hard limit. The keeper's tag at
# their end tells those of one keeper from all others. Below the least, a limit is meant as one.
_NUMBER_FIRST, _NUMBER_LEAST = 2**62, 2**50


class ChildSpec:
    """Decoded start request; the child inherits nothing."""

    def __init__(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        self.key = text(message, "key")
        self.argv = texts(message, "argv")
        self.cwd = text(message, "cwd")
        env = mapping(message, "env")
        self.env = {name: text(env, name) for name in env}
        self.arg0 = None if message.get("arg0") is None else text(message, "arg0")
        self.size: tuple[int, int] | None = None
        if message.get("terminal") is not None:
            terminal = mapping(message, "terminal")
            self.size = number(terminal, "rows"), number(terminal, "cols")
        self.pipe_stdin = message.get("pipe_stdin") is True
        self.way: EntrySpec | None = None
        if message.get("entry") is not None:
            self.way = EntrySpec(mapping(message, "entry"), descriptors)
        if not self.argv or not self.argv[0] or not self.key:
            raise MalformedPacket("there is nothing to start")
        if self.size and not all(0 <= side <= _SIZE_MAX for side in self.size):
            raise MalformedPacket("no terminal has such a size")


class KeptChild:
    """A child process and our ends of its descriptors; reaped only when it is forgotten.

    Until then the kernel does not reuse its pid, and its process group can be signalled safely. A
    child in a place is reaped at once: a pid namespace cannot end while it contains a zombie.
    """

    def __init__(
        self, key: str, pid: int, holds: dict[str, int], *, is_in_place: bool = False
    ) -> None:
        self.key, self.pid = key, pid
        self._is_in_place = is_in_place
        self.pidfd = _aside(os.pidfd_open(pid))
        self.holds = {name: _aside(descriptor) for name, descriptor in holds.items()}
        self.status: int | None = None
        # The limit number that its descendants have, too.
        self.number: int | None = None

    def look(self) -> bool:
        """Poll for its exit; sets `status`, which is 128 + n if signal n killed it."""
        leave = 0 if self._is_in_place else os.WNOWAIT
        end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | leave)
        if end is not None:
            self.status = end.si_status + (0 if end.si_code == os.CLD_EXITED else 128)
        return end is not None

    def signal(self, number: int, *, group: bool) -> bool:
        """Signal it or its process group; returns whether any process received the signal."""
        if self._is_in_place and self.status is not None:
            return False
        try:
            if group:
                os.killpg(self.pid, number)
            else:
                signal.pidfd_send_signal(self.pidfd, number)
        except (ProcessLookupError, PermissionError):
            return False
        return group or self.status is None

    def close_stdin(self) -> None:
        """Close our write end of its stdin: it reads EOF once the server has closed its copy
        too.
        """
        if (stdin := self.holds.pop("stdin", None)) is not None:
            os.close(stdin)

    def hold(self, name: str, descriptor: int) -> None:
        """Hold a descriptor under a name; closes the previous one of that name."""
        before, self.holds[name] = self.holds.get(name), _aside(descriptor)
        if before is not None:
            os.close(before)

    def release(self) -> None:
        """Close every descriptor but the pidfd."""
        while self.holds:
            os.close(self.holds.popitem()[1])

    def reap(self) -> None:
        """Reap it after its exit, which frees its pid."""
        if not self._is_in_place:
            os.waitpid(self.pid, 0)
        os.close(self.pidfd)


def started(order: ChildSpec, keeper: KeeperName) -> KeptChild:
    """Start a child that leads its own session; raises `OSError`."""
    order.env[MARK] = f"{order.key}@{keeper}"
    with ExitStack() as ours, ExitStack() as theirs:
        if order.size is None:
            holds, ends = _pipes(order, ours, theirs)
        else:
            holds, ends = _terminal(order.size, ours, theirs)
        with _numbered(keeper.tag) as number:
            if order.way is None:
                with _in_its_place(order.cwd):
                    pid = _spawned(order, _actions(ends, is_terminal=order.size is not None))
            else:
                with _limited_as_given():
                    pid = _entered(order, order.way, ends, theirs)
        try:
            is_in_place = order.way is not None and order.way.leads_to_place
            child = KeptChild(order.key, pid, holds, is_in_place=is_in_place)
        except OSError:
            # Too many open files: what cannot be held must not run.
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        child.number = number
        ours.pop_all()
    return child


def _pipes(
    order: ChildSpec, ours: ExitStack, theirs: ExitStack
) -> tuple[dict[str, int], dict[int, int]]:
    """Return our ends by name and the child's by descriptor number."""
    holds: dict[str, int] = {}
    ends: dict[int, int] = {}
    if order.pipe_stdin:
        ends[0], holds["stdin"] = _pipe(theirs, ours)
    for target, name in enumerate(("stdout", "stderr"), start=1):
        holds[name], ends[target] = _pipe(ours, theirs)
    return holds, ends


def _terminal(
    size: tuple[int, int], ours: ExitStack, theirs: ExitStack
) -> tuple[dict[str, int], dict[int, int]]:
    master, slave = os.openpty()
    ours.callback(os.close, master)
    theirs.callback(os.close, slave)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
    # Terminals cannot be spliced into files.
    # What left the terminal and is not in its file yet waits here: outside of any server.
    read_end, write_end = _pipe(ours, ours)
    return {"pty": master, "pipe_out": read_end, "pipe_in": write_end}, dict.fromkeys(
        range(3), slave
    )


def _actions(ends: Mapping[int, int], *, is_terminal: bool) -> list[tuple[object, ...]]:
    # The leader of a session gets the first one that it opens as its own.
    if is_terminal:
        first = os.POSIX_SPAWN_OPEN, 0, os.ttyname(ends[0]), os.O_RDWR, 0
        return [first, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
    actions: list[tuple[object, ...]] = []
    if 0 not in ends:
        actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
    return actions + [(os.POSIX_SPAWN_DUP2, end, target) for target, end in ends.items()]


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read_end, write_end = os.pipe()
    reader.callback(os.close, read_end)
    writer.callback(os.close, write_end)
    return read_end, write_end


def _aside(descriptor: int) -> int:
    """Move a descriptor to a high number, if the limit allows; see _LOW_NUMBERS."""
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LOW_NUMBERS)
    except OSError:
        return descriptor
    os.close(descriptor)
    return moved


@contextmanager
def _in_its_place(cwd: str) -> Generator[None]:
    os.chdir(cwd)
    try:
        with _limited_as_given():
            yield
    finally:
        os.chdir("/")


@contextmanager
def _limited_as_given() -> Generator[None]:
    now = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (GIVEN_LIMIT[0], now[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, now)


@contextmanager
def _numbered(tag: int) -> Generator[int | None]:
    """Set the limit number for one child; afterwards the keeper takes another number itself."""
    number = _lower_number(tag)
    try:
        yield number
    finally:
        _lower_number(tag)


def _lower_number(tag: int) -> int | None:
    _, most = resource.getrlimit(resource.RLIMIT_RTTIME)
    before = _NUMBER_FIRST if most == resource.RLIM_INFINITY or most > _NUMBER_FIRST else most
    number = ((before >> TAG_BITS) - 1 << TAG_BITS) | tag
    if number < _NUMBER_LEAST:
        return None
    resource.setrlimit(resource.RLIMIT_RTTIME, (number, number))
    return number


def _entered(order: ChildSpec, way: EntrySpec, ends: dict[int, int], theirs: ExitStack) -> int:
    if 0 not in ends:
        ends[0] = os.open(os.devnull, os.O_RDONLY)
        theirs.callback(os.close, ends[0])
    return way.start(_words(order), order.env, order.cwd, ends)


def _words(order: ChildSpec) -> list[str]:
    return [order.argv[0] if order.arg0 is None else order.arg0, *order.argv[1:]]


def _spawned(order: ChildSpec, actions: list[tuple[object, ...]]) -> int:
    program, argv = _located(order.argv[0], order.env), _words(order)
    try:
        return _spawn(program, argv, order.env, actions)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return _spawn(_SHELL, [_SHELL, program, *argv[1:]], order.env, actions)


def _spawn(
    program: str,
    argv: list[str],
    env: Mapping[str, str],
    actions: list[tuple[object, ...]],
) -> int:
    return os.posix_spawn(
        program,
        argv,
        env,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=_IGNORED,
    )


def _located(name: str, env: Mapping[str, str]) -> str:
    """The file that a command names, by the child's own PATH and seen from its directory."""
    if "/" in name:
        return name
    code = errno.ENOENT
    for place in env.get("PATH", os.defpath).split(":"):
        file = os.path.join(place or ".", name)
        try:
            is_file = stat.S_ISREG(os.stat(file).st_mode)
        except OSError:
            continue
        if is_file and os.access(file, os.X_OK):
            return file
        if is_file:
            code = errno.EACCES
    raise OSError(code, os.strerror(code), name)
