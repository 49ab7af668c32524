"""Decide which system calls tell what a process is kept from, and what follows from one.

A listener is told of each before it happens, and lets it happen: the kernel decides, and what it
decides is not heard. So what is said here follows from where things are, not from what was refused.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final

from holdfast.confine.core.seccomp import asking_about
from holdfast.confine.failures import SandboxUnavailable

NOTICE: Final = struct.Struct("=QIIiIQ6Q")  # struct seccomp_notif
REPLY: Final = struct.Struct("=QqiI")  # struct seccomp_notif_resp
GO_ON: Final = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
HERE: Final = -100  # AT_FDCWD
PATH_BYTES_MAX: Final = 4096

_INT: Final = 1 << 32
_WRITES, _MAKES = 0o1003, 0o100  # for writing, also what it held; O_CREAT
_ELSEWHERE: Final = ("/proc/", "/sys/", "/dev/pts/")  # of which each sandbox has its own


class Wish(StrEnum):
    """What a call wants with a path."""

    OPEN = "open"  # as the flags beside it say
    MAKE = "make"  # something that must not be there yet
    CHANGE = "change"


class Why(StrEnum):
    """Why it is kept from it."""

    UNSEEN = "not seen"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Call:
    """Where in the arguments of a call its paths are: (directory, path) pairs, and its flags.

    A directory that is None is the current one. Of `openat2` the flags stand in memory.
    """

    wish: Wish
    paths: tuple[tuple[int | None, int], ...]
    flags: int | None = None
    has_flags_in_memory: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of a path: whether it is there, inside and outside, and can be changed."""

    is_inside: bool
    is_outside: bool
    is_read_only: bool
    is_plain: bool = True  # neither a device nor a socket, which can be written to all the same


@dataclass(frozen=True, slots=True, order=True)
class Refusal:
    """A path that a process is kept from, and how often it tried."""

    path: str
    why: str
    count: int = 1


_OPEN, _MAKE, _CHANGE = Wish.OPEN, Wish.MAKE, Wish.CHANGE
# The numbers on x86_64 and aarch64, and what the arguments mean.
_CALLS: Final[tuple[tuple[int | None, int | None, Call], ...]] = (
    (2, None, Call(_OPEN, ((None, 0),), flags=1)),  # open
    (85, None, Call(_CHANGE, ((None, 0),))),  # creat
    (257, 56, Call(_OPEN, ((0, 1),), flags=2)),  # openat
    (437, 437, Call(_OPEN, ((0, 1),), flags=2, has_flags_in_memory=True)),  # openat2
    (83, None, Call(_MAKE, ((None, 0),))),  # mkdir
    (258, 34, Call(_MAKE, ((0, 1),))),  # mkdirat
    (133, None, Call(_MAKE, ((None, 0),))),  # mknod
    (259, 33, Call(_MAKE, ((0, 1),))),  # mknodat
    (84, None, Call(_CHANGE, ((None, 0),))),  # rmdir
    (87, None, Call(_CHANGE, ((None, 0),))),  # unlink
    (263, 35, Call(_CHANGE, ((0, 1),))),  # unlinkat
    (82, None, Call(_CHANGE, ((None, 0), (None, 1)))),  # rename
    (264, 38, Call(_CHANGE, ((0, 1), (2, 3)))),  # renameat
    (316, 276, Call(_CHANGE, ((0, 1), (2, 3)))),  # renameat2
    (86, None, Call(_MAKE, ((None, 1),))),  # link
    (265, 37, Call(_MAKE, ((2, 3),))),  # linkat
    (88, None, Call(_MAKE, ((None, 1),))),  # symlink
    (266, 36, Call(_MAKE, ((1, 2),))),  # symlinkat
    (90, None, Call(_CHANGE, ((None, 0),))),  # chmod
    (268, 53, Call(_CHANGE, ((0, 1),))),  # fchmodat
    (452, 452, Call(_CHANGE, ((0, 1),))),  # fchmodat2
    (92, None, Call(_CHANGE, ((None, 0),))),  # chown
    (94, None, Call(_CHANGE, ((None, 0),))),  # lchown
    (260, 54, Call(_CHANGE, ((0, 1),))),  # fchownat
    (76, 45, Call(_CHANGE, ((None, 0),))),  # truncate
    (235, None, Call(_CHANGE, ((None, 0),))),  # utimes
    (280, 88, Call(_CHANGE, ((0, 1),))),  # utimensat
)
_COLUMNS: Final = {"x86_64": 0, "aarch64": 1}


@cache
def calls_of(machine: str) -> dict[int, Call]:
    """What is asked about on a machine of this kind, by number."""
    if machine not in _COLUMNS:
        raise SandboxUnavailable(reason=f"nobody knows the system calls of {machine}")
    column = _COLUMNS[machine]
    numbered = [((plain, arm)[column], call) for plain, arm, call in _CALLS]
    return {number: call for number, call in numbered if number is not None}


def watching_program(machine: str) -> bytes:
    """The filter that tells a listener of all these, and nobody of anything else."""
    return asking_about(machine, tuple(calls_of(machine)))


def has_listeners(release: str) -> bool:
    """Whether a kernel of this release can let a call go on that a listener was told of."""
    numbers = [int(word) for word in re.findall(r"\d+", release)[:2]]
    return numbers >= [5, 5]


def directory_of(argument: int) -> int:
    """The descriptor that an argument is, of which a call looks at 32 bits."""
    low = argument % _INT
    return low - _INT if low >= _INT // 2 else low


def verdict(wish: Wish, flags: int, found: Found) -> Why | None:
    """Why a process is kept from a path, if it is kept from it by its sandbox."""
    if not found.is_inside and found.is_outside:
        return Why.UNSEEN
    if wish is Wish.OPEN:
        makes = bool(flags & _MAKES) and not found.is_inside
        is_changed = makes or (found.is_plain and bool(flags & _WRITES))
    else:
        is_changed = wish is Wish.CHANGE or not found.is_inside
    return Why.READ_ONLY if is_changed and found.is_read_only else None


def is_ours_to_tell(path: str) -> bool:
    """Whether a path means the same inside and outside."""
    return path.startswith("/") and not f"{path}/".startswith(_ELSEWHERE)


class Refusals:
    """All that a process was kept from, once each, and not without a bound."""

    def __init__(self, most: int = 1000) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._most = most
        self.untold = 0

    def add(self, path: str, why: Why) -> None:
        """Take note of one."""
        if (path, why) in self._counts or len(self._counts) < self._most:
            self._counts[path, why] = self._counts.get((path, why), 0) + 1
        else:
            self.untold += 1

    def __iter__(self) -> Iterator[Refusal]:
        for (path, why), count in sorted(self._counts.items()):
            yield Refusal(path, why, count)
