"""Have the kernel hold this very process back: a fence, a filter, a shield.

Only the standard library is imported, for the same reason as in `kernel`. Nothing of this can be
undone, and whatever the process starts is held back too.
"""

from __future__ import annotations

import ctypes
import os
import socket
import stat
from collections.abc import Sequence
from typing import Final

from holdfast.confine.fence import Fence, grant
from holdfast.confine.kernel import (
    CLONE_NEWNS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    call,
    control,
    mount,
    unshare,
)

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_PR_SET_SECCOMP, _MODE_FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_SECCOMP_NUMBERS: Final = {"x86_64": 317, "aarch64": 277}
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_INSTRUCTION_BYTES: Final = 8
_ON_FILES: Final = 0b1100_0000_0000_0111  # rights that something without entries can have
_MS_REMOUNT: Final = 0x20
_MOUNT_FLAGS: Final = MS_NOSUID | MS_NODEV | MS_NOEXEC


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def landlock_version() -> int:
    """Which version of Landlock there is; 0 if there is none."""
    try:
        return call(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


def stay_within(fence: Fence) -> None:
    """Apply a Landlock ruleset to this process; rules for missing paths are skipped."""
    attributes = fence.attributes()
    rules = call(_CREATE, attributes, len(attributes), 0)
    try:
        for path, rights in fence.grants:
            try:
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                if not stat.S_ISDIR(os.fstat(opened).st_mode):
                    rights &= _ON_FILES
                call(_ADD, rules, _PATH_BENEATH, grant(rights, opened), 0)
            finally:
                os.close(opened)
        call(_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def shield(paths: Sequence[str]) -> None:
    """Have a view of our own in which these are read-only; a device can still be written to.

    What a mount forbids already must be forbidden again, or the kernel refuses.
    """
    unshare(CLONE_NEWNS)
    mount(None, b"/", flags=MS_REC | MS_PRIVATE)
    for path in paths:
        name = os.fsencode(path)
        kept = os.statvfs(path).f_flag & _MOUNT_FLAGS
        mount(name, name, flags=MS_BIND)
        flags = _MS_REMOUNT | MS_BIND | MS_RDONLY | kept
        mount(None, name, flags=flags)


def filter_calls(program: bytes) -> None:
    """Have every system call of ours judged by a program, from the next one on."""
    filtered = _Program(len(program) // _INSTRUCTION_BYTES, program)
    control(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filtered))


def have_watched(program: bytes, watcher: int) -> None:
    """Hand whoever is at the other end of a socket a listener, and have it told of calls.

    Each that the program asks about waits until the listener has let it go on.
    """
    control(_PR_SET_NO_NEW_PRIVS, 1)
    filtered = _Program(len(program) // _INSTRUCTION_BYTES, program)
    number = _SECCOMP_NUMBERS[os.uname().machine]
    listener = call(number, _SET_FILTER, _NEW_LISTENER, ctypes.addressof(filtered))
    with socket.socket(fileno=watcher) as other:
        socket.send_fds(other, [b"l"], [listener])
    os.close(listener)
