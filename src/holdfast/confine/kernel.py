"""The system calls of Linux that shut a process in, and that Python has no function for.

Only the standard library is imported: a keeper has this in its memory, and nothing else of ours.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Final

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUTS = 0x0002_0000, 0x0800_0000, 0x0400_0000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x1000_0000, 0x2000_0000, 0x4000_0000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18

_CLONE_PARENT: Final = 0x8000
_CLONE_NUMBERS: Final = {"x86_64": 56, "aarch64": 220}
_ACTION_NUMBERS: Final = {"x86_64": 13, "aarch64": 134}
_ACTION_SIZE, _SIGNALS_OF_LIBC = 32, (32, 33)
_CLOSE_RANGE: Final = 436  # the same on every architecture
_SIGCHLD: Final = 17
_LINKS_OF_ONE_THREAD: Final = 3  # those of its directory, and of two more
_SIGNALS_MAX, _SIGNAL_SET_SIZE, _SIG_SETMASK = 64, 128, 2
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 47, 2
_CAPABILITY_VERSION_3: Final = 0x2008_0522
_HARMLESS: Final = 35  # CAP_WAKE_ALARM: to set a clock that wakes a machine


def unshare(flags: int) -> None:
    """Leave the namespaces that we share with the one who started us."""
    _checked(_libc().unshare(flags))


def join(namespace: int) -> None:
    """Enter the namespace that a descriptor stands for, of whatever kind."""
    _checked(_libc().setns(namespace, 0))


def mount(
    source: bytes | None,
    target: bytes,
    kind: bytes | None = None,
    *,
    flags: int = 0,
    options: bytes | None = None,
) -> None:
    """Mount something over a directory, or change how it is mounted."""
    _checked(_libc().mount(source, target, kind, ctypes.c_ulong(flags), options))


def fork_bare() -> int:
    """Fork a child; in it, return 0.

    Python is not told, which saves it a tenth of the work: in the child nothing may be done but to
    prepare for another program. Where there are other threads it must be: one of them may have its
    lock just now, and in the child no thread would ever release it.
    """
    if os.stat("/proc/self/task").st_nlink > _LINKS_OF_ONE_THREAD:
        return os.fork()
    return call(_CLONE_NUMBERS[os.uname().machine], _SIGCHLD, 0, 0, 0, 0)


def fork_sibling() -> int:
    """Fork a child in the same way that our own parent will wait for; in it, return 0."""
    return call(_CLONE_NUMBERS[os.uname().machine], _CLONE_PARENT | _SIGCHLD, 0, 0, 0, 0)


def give_up_privileges() -> None:
    """Never again gain a capability, whatever is run: set-user-id programs are plain ones now."""
    control(_PR_SET_NO_NEW_PRIVS, 1)
    capability = 0
    while _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) >= 0:
        capability += 1


def stand_apart() -> None:
    """Keep one harmless capability over the next program, and no other.

    Processes without capabilities can then neither trace us nor open /proc/PID/fd of ours.
    """
    bit = 1 << (_HARMLESS - 32)
    head = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _checked(_libc().capset(head, (ctypes.c_uint32 * 6)(0, 0, 0, bit, bit, bit)))
    control(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, _HARMLESS)
    control(_PR_SET_NO_NEW_PRIVS, 1)


def default_signals() -> None:
    """Ignore no signal and hold none back; for the moment before another program.

    Not by Python's own functions: a forked child pays for every page that they touch.
    """
    libc = _libc()
    for number in range(1, _SIGNALS_MAX + 1):
        libc.signal(number, None)
    # The C library keeps two for itself and will not touch them, but may have had them ignored.
    action = ctypes.c_long(_ACTION_NUMBERS[os.uname().machine])
    for number in _SIGNALS_OF_LIBC:
        libc.syscall(action, number, bytes(_ACTION_SIZE), None, ctypes.c_size_t(8))
    libc.sigprocmask(_SIG_SETMASK, bytes(_SIGNAL_SET_SIZE), None)


def forbid_new_privileges() -> None:
    """Make set-user-id programs plain ones, for us and all that we start."""
    control(_PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(signal: int) -> None:
    """Have the kernel send us a signal when the one who waits for us is gone."""
    control(_PR_SET_PDEATHSIG, signal)


def close_between(first: int, last: int) -> None:
    """Close every descriptor from the first to the last, open or not."""
    if first > last:
        return
    if _libc().syscall(ctypes.c_long(_CLOSE_RANGE), first, last, 0) < 0:  # before Linux 5.9
        os.closerange(first, min(last + 1, os.sysconf("SC_OPEN_MAX")))


def call(number: int, *arguments: bytes | int | None) -> int:
    """Make a system call by number, for calls without a libc wrapper."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(_libc().syscall(ctypes.c_long(number), *words))


def control(option: int, value: int, more: object = 0) -> None:
    """Change something about this process; `more` is what some options want beside a number."""
    _checked(_libc().prctl(option, value, more, 0, 0))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
