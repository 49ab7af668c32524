"""Seccomp filters as BPF programs: one denies system calls, one reports path calls.

The denying filter is a deny list, since an allow list would break programs: namespaces and mounts,
access to other processes, and kernel subsystems that were used for escapes before. It compares only
32 bits of an argument where the kernel truncates it, too.

The reporting filter notifies a listener before a call happens. The listener does not see the
result, so `verdict` infers a denial from whether the path exists inside and outside.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cache
from typing import Final

from holdfast.confine.failures import SandboxUnavailable

EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97

_INSTRUCTION: Final = struct.Struct("=HBBI")
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_ALLOW, _REFUSE, _KILL, _ASK = 0x7FFF_0000, 0x0005_0000, 0x8000_0000, 0x7FC0_0000
_X32, _NO_CALL = 0x4000_0000, 0xFFFF_FFFF
_JUMP_MOST: Final = 255

_NEW_NAMESPACES: Final = 0x7E02_0000  # cgroup, uts, ipc, user, pid, net; mount
_NEW_TIME: Final = 0x80  # a part of the signal for clone, a namespace for unshare
_TERMINAL_INPUT: Final = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX: type into someone's terminal
_PERSONALITIES: Final = (0, _NO_CALL)  # the plain one, and asking for it
_ROUTE: Final = 0  # the one protocol of netlink that finding an address needs


class SocketFamily(IntEnum):
    """A kind of socket."""

    UNIX = 1
    INET = 2
    INET6 = 10
    NETLINK = 16


@dataclass(frozen=True, slots=True)
class _Architecture:
    code: int
    column: int


_ARCHITECTURES: Final = {
    "x86_64": _Architecture(code=0xC000_003E, column=0),
    "aarch64": _Architecture(code=0xC000_00B7, column=1),
}
# The number of each call on x86_64 and on aarch64; None where there is no such call.
_ASKED_ABOUT: Final[dict[str, tuple[int, int]]] = {
    "clone": (56, 220),
    "unshare": (272, 97),
    "clone3": (435, 435),
    "ioctl": (16, 29),
    "personality": (135, 92),
    "socket": (41, 198),
}
_REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    "_sysctl": (156, None),
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}


@cache
def program(machine: str, families: tuple[SocketFamily, ...]) -> bytes:
    """The filter for a machine of this kind, as the kernel and bubblewrap take it.

    Sockets can be made of the given families alone.
    """
    known = _ARCHITECTURES.get(machine)
    if known is None:
        raise SandboxUnavailable(reason=f"there is no filter of system calls for {machine}")
    asked = {name: numbers[known.column] for name, numbers in _ASKED_ABOUT.items()}
    refused = [numbers[known.column] for numbers in _REFUSED.values()]
    unshared = _NEW_NAMESPACES | _NEW_TIME
    plain = _if_in(_PERSONALITIES, [_allow()])
    return b"".join(
        [
            *_head(known.code),
            *_if_in((number for number in refused if number is not None), [_refuse()]),
            # BPF cannot read the flags of clone3, which are in memory. On ENOSYS libraries fall
            # back to `clone`.
            *_if_equal(asked["clone3"], [_refuse(ENOSYS)]),
            *_if_equal(asked["clone"], [_argument(0), *_if_any(_NEW_NAMESPACES), _allow()]),
            *_if_equal(asked["unshare"], [_argument(0), *_if_any(unshared), _allow()]),
            *_if_equal(
                asked["ioctl"],
                [_argument(1), *_if_in(_TERMINAL_INPUT, [_refuse()]), _allow()],
            ),
            *_if_equal(asked["personality"], [_argument(0), *plain, _refuse()]),
            *_if_equal(asked["socket"], _sockets(frozenset(families))),
            _allow(),
        ]
    )


@cache
def asking_about(machine: str, numbers: tuple[int, ...]) -> bytes:
    """A filter that asks a listener about these calls, and allows everything else."""
    known = _ARCHITECTURES.get(machine)
    if known is None:
        raise SandboxUnavailable(reason=f"there is no filter of system calls for {machine}")
    return b"".join(
        [
            _load(_ARCHITECTURE),
            _instruction(_EQUAL, known.code, skip_true=1),
            _allow(),  # another filter kills it
            _load(_NUMBER),
            *_if_in(numbers, [_instruction(_RETURN, _ASK)]),
            _allow(),
        ]
    )


def _head(architecture: int) -> list[bytes]:
    """Kill the process on a call of another architecture: its call numbers differ."""
    return [
        _load(_ARCHITECTURE),
        _instruction(_EQUAL, architecture, skip_true=1),
        _instruction(_RETURN, _KILL),
        _load(_NUMBER),
        *_if_equal(_NO_CALL, [_allow()]),  # some ask for no call at all, to see what comes
        _instruction(_AT_LEAST, _X32, skip_false=1),
        _instruction(_RETURN, _KILL),
    ]


def _sockets(families: frozenset[SocketFamily]) -> list[bytes]:
    plain = sorted(families - {SocketFamily.NETLINK})
    route: list[bytes] = []
    if SocketFamily.NETLINK in families:
        protocol = [_argument(2), *_if_equal(_ROUTE, [_allow()]), _refuse(EAFNOSUPPORT)]
        route = _if_equal(SocketFamily.NETLINK, protocol)
    return [_argument(0), *_if_in(plain, [_allow()]), *route, _refuse()]


def _if_in(values: Iterable[int], then: list[bytes]) -> list[bytes]:
    return [each for value in values for each in _if_equal(value, then)]


def _if_equal(value: int, then: list[bytes]) -> list[bytes]:
    """What to do when the word that was loaded has this value; it must end in an answer."""
    assert len(then) <= _JUMP_MOST
    return [_instruction(_EQUAL, value, skip_false=len(then)), *then]


def _if_any(bits: int) -> list[bytes]:
    return [_instruction(_ANY_BIT, bits, skip_false=1), _refuse()]


def _argument(position: int) -> bytes:
    """Load the lower half of an argument; both architectures put it first."""
    return _load(_ARGUMENTS + 8 * position)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _refuse(error: int = EPERM) -> bytes:
    return _instruction(_RETURN, _REFUSE | error)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _instruction(code: int, value: int, *, skip_true: int = 0, skip_false: int = 0) -> bytes:
    return _INSTRUCTION.pack(code, skip_true, skip_false, value)


NOTICE: Final = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
REPLY: Final = struct.Struct("=QqiI")  # struct seccomp_notif_resp
GO_ON: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
HERE: Final = -100  # AT_FDCWD
PATH_BYTES_MAX: Final = 4096

_INT: Final = 1 << 32
_WRITES, _MAKES = 0o1003, 0o100  # for writing, also what it held; O_CREAT
_ELSEWHERE: Final = ("/proc/", "/sys/", "/dev/pts/")  # of which each sandbox has its own


class AccessIntent(StrEnum):
    """What a call wants with a path."""

    OPEN = "open"  # as the flags beside it say
    MAKE = "make"  # something that must not be there yet
    CHANGE = "change"


class RefusalReason(StrEnum):
    """Why it is kept from it."""

    UNSEEN = "not seen"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class PathSyscall:
    """Where in the arguments of a call its paths are: (directory, path) pairs, and its flags.

    A directory that is None is the current one. The flags of `openat2` are in memory, not in an
    argument.
    """

    wish: AccessIntent
    paths: tuple[tuple[int | None, int], ...]
    flags: int | None = None
    has_flags_in_memory: bool = False


@dataclass(frozen=True, slots=True)
class PathAccess:
    """What is known of a path: whether it is there, inside and outside, and can be changed."""

    is_inside: bool
    is_outside: bool
    is_read_only: bool
    is_plain: bool = True  # neither a device nor a socket, which can be written to all the same


@dataclass(frozen=True, slots=True, order=True)
class PathRefusal:
    """A path that a process is kept from, and how often it tried."""

    path: str
    why: str
    count: int = 1


_OPEN, _MAKE, _CHANGE = AccessIntent.OPEN, AccessIntent.MAKE, AccessIntent.CHANGE
# The numbers on x86_64 and aarch64, and what the arguments mean.
_CALLS: Final[tuple[tuple[int | None, int | None, PathSyscall], ...]] = (
    (2, None, PathSyscall(_OPEN, ((None, 0),), flags=1)),  # open
    (85, None, PathSyscall(_CHANGE, ((None, 0),))),  # creat
    (257, 56, PathSyscall(_OPEN, ((0, 1),), flags=2)),  # openat
    (437, 437, PathSyscall(_OPEN, ((0, 1),), flags=2, has_flags_in_memory=True)),  # openat2
    (83, None, PathSyscall(_MAKE, ((None, 0),))),  # mkdir
    (258, 34, PathSyscall(_MAKE, ((0, 1),))),  # mkdirat
    (133, None, PathSyscall(_MAKE, ((None, 0),))),  # mknod
    (259, 33, PathSyscall(_MAKE, ((0, 1),))),  # mknodat
    (84, None, PathSyscall(_CHANGE, ((None, 0),))),  # rmdir
    (87, None, PathSyscall(_CHANGE, ((None, 0),))),  # unlink
    (263, 35, PathSyscall(_CHANGE, ((0, 1),))),  # unlinkat
    (82, None, PathSyscall(_CHANGE, ((None, 0), (None, 1)))),  # rename
    (264, 38, PathSyscall(_CHANGE, ((0, 1), (2, 3)))),  # renameat
    (316, 276, PathSyscall(_CHANGE, ((0, 1), (2, 3)))),  # renameat2
    (86, None, PathSyscall(_MAKE, ((None, 1),))),  # link
    (265, 37, PathSyscall(_MAKE, ((2, 3),))),  # linkat
    (88, None, PathSyscall(_MAKE, ((None, 1),))),  # symlink
    (266, 36, PathSyscall(_MAKE, ((1, 2),))),  # symlinkat
    (90, None, PathSyscall(_CHANGE, ((None, 0),))),  # chmod
    (268, 53, PathSyscall(_CHANGE, ((0, 1),))),  # fchmodat
    (452, 452, PathSyscall(_CHANGE, ((0, 1),))),  # fchmodat2
    (92, None, PathSyscall(_CHANGE, ((None, 0),))),  # chown
    (94, None, PathSyscall(_CHANGE, ((None, 0),))),  # lchown
    (260, 54, PathSyscall(_CHANGE, ((0, 1),))),  # fchownat
    (76, 45, PathSyscall(_CHANGE, ((None, 0),))),  # truncate
    (235, None, PathSyscall(_CHANGE, ((None, 0),))),  # utimes
    (280, 88, PathSyscall(_CHANGE, ((0, 1),))),  # utimensat
)
_COLUMNS: Final = {"x86_64": 0, "aarch64": 1}


@cache
def calls_of(machine: str) -> dict[int, PathSyscall]:
    """The reported system calls of an architecture, by number."""
    if machine not in _COLUMNS:
        raise SandboxUnavailable(reason=f"the system call numbers of {machine} are not known")
    column = _COLUMNS[machine]
    numbered = [((plain, arm)[column], call) for plain, arm, call in _CALLS]
    return {number: call for number, call in numbered if number is not None}


def watching_program(machine: str) -> bytes:
    """The BPF program that notifies the listener of these calls and allows all others."""
    return asking_about(machine, tuple(calls_of(machine)))


def has_listeners(release: str) -> bool:
    """Whether a kernel release supports continuing a call after its notification (5.5)."""
    numbers = [int(word) for word in re.findall(r"\d+", release)[:2]]
    return numbers >= [5, 5]


def directory_of(argument: int) -> int:
    """The descriptor that an argument is, of which a call looks at 32 bits."""
    low = argument % _INT
    return low - _INT if low >= _INT // 2 else low


def verdict(wish: AccessIntent, flags: int, found: PathAccess) -> RefusalReason | None:
    """Why a process is kept from a path, if it is kept from it by its sandbox."""
    if not found.is_inside and found.is_outside:
        return RefusalReason.UNSEEN
    if wish is AccessIntent.OPEN:
        makes = bool(flags & _MAKES) and not found.is_inside
        is_changed = makes or (found.is_plain and bool(flags & _WRITES))
    else:
        is_changed = wish is AccessIntent.CHANGE or not found.is_inside
    return RefusalReason.READ_ONLY if is_changed and found.is_read_only else None


def is_ours_to_tell(path: str) -> bool:
    """Whether a path means the same inside and outside."""
    return path.startswith("/") and not f"{path}/".startswith(_ELSEWHERE)


class Refusals:
    """All that a process was kept from, once each, and not without a bound."""

    def __init__(self, most: int = 1000) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._most = most
        self.untold = 0

    def add(self, path: str, why: RefusalReason) -> None:
        """Take note of one."""
        if (path, why) in self._counts or len(self._counts) < self._most:
            self._counts[path, why] = self._counts.get((path, why), 0) + 1
        else:
            self.untold += 1

    def __iter__(self) -> Iterator[PathRefusal]:
        for (path, why), count in sorted(self._counts.items()):
            yield PathRefusal(path, why, count)
