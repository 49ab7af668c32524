"""Turn a plain entry into one through bubblewrap: the better way to shut a process in."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from holdfast.confine.entry import ProcessEntry
from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.filesystem import path_info, system_paths
from holdfast.confine.policy import (
    ACCOUNTS,
    DEVICES,
    GROUPS,
    HOME,
    USER,
    ProtectedPath,
    SandboxPolicy,
)
from holdfast.confine.sandbox.arguments import NEEDED, Descriptors, arguments, told_of_process
from holdfast.confine.sandbox.seccomp import SocketFamily, program

# Never searched on PATH: a process that sets PATH could replace the sandbox.
_HOMES: Final = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
_ASKING_LONGEST: Final = 10.0
_OWN: Final = {"HOME": HOME, "USER": USER, "LOGNAME": USER, "TMPDIR": "/tmp"}
# RLIMIT_NPROC counts per user; only inside is the uid used by this sandbox alone.
_COUNTED: Final = 'ulimit -p "$0" 2>/dev/null || ulimit -u "$0" || exit 126; exec "$@"'


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """The program, and the options that this version of it has."""

    program: str
    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What an entry is wrapped with, beside the policy."""

    bubblewrap: Bubblewrap
    variables: Mapping[str, str]
    kept: Sequence[ProtectedPath]
    alive: int
    is_counted: bool
    root: int | None


@cache
def find_bubblewrap(places: Sequence[str] = _HOMES) -> Bubblewrap:
    """The bubblewrap of this machine, asked for its options; SandboxUnavailable without one."""
    for place in places:
        if os.access(place, os.X_OK):
            break
    else:
        raise SandboxUnavailable(reason="bubblewrap is not installed")
    try:
        asked = subprocess.run(
            [place, "--help"], env={}, capture_output=True, text=True, timeout=_ASKING_LONGEST
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxUnavailable(reason=f"bubblewrap does not answer ({error})") from error
    known = frozenset(word for word in asked.stdout.split() if word.startswith("--"))
    if missing := NEEDED - known:
        raise SandboxUnavailable(reason=f"bubblewrap is too old: no {', '.join(sorted(missing))}")
    return Bubblewrap(place, known)


def wrapped(
    entry: ProcessEntry, policy: SandboxPolicy, wrapping: Wrapping, undo: ExitStack
) -> ProcessEntry:
    """The entry through bubblewrap that keeps a policy; `undo` gives its descriptors back.

    Bubblewrap itself gets no variable of the process: one of them could make it load a library.
    """
    first = max((2, *entry.files.values())) + 1
    numbers = Descriptors(*range(first, first + 5))
    words = arguments(
        policy,
        wrapping.kept,
        {path: path_info(path, root=wrapping.root) for path in policy.hidden},
        system_paths=system_paths(),
        descriptors=numbers,
        known=wrapping.bubblewrap.known,
    )
    words += told_of_process({**wrapping.variables, **_OWN}, entry.cwd)
    families = [SocketFamily.INET, SocketFamily.INET6, SocketFamily.NETLINK]
    if policy.has_unix_sockets:
        families.append(SocketFamily.UNIX)
    handed = {
        _file(b"".join(os.fsencode(word) + b"\0" for word in words), undo): numbers.arguments,
        _file(program(platform.machine(), tuple(families)), undo): numbers.filter,
        _file(ACCOUNTS.encode(), undo): numbers.accounts,
        _file(GROUPS.encode(), undo): numbers.groups,
        wrapping.alive: numbers.alive,
    }
    command = [entry.program, *entry.argv[1:]]
    if not wrapping.is_counted:
        command = ["/bin/sh", "-c", _COUNTED, str(policy.limits.processes), *command]
    return replace(
        entry,
        argv=["bwrap", "--args", str(numbers.arguments), "--", *command],
        env={},
        cwd="/",
        program=wrapping.bubblewrap.program,
        files={**entry.files, **handed},
        limits=(*entry.limits, *limits_of_each(policy)),
        # As root it needs the right to be someone else in there; it keeps none of its rights.
        is_unprivileged=False,
        # Root owns the devices, even without any right, and could change their modes for all.
        shields=() if os.geteuid() else tuple(path for path in DEVICES if os.path.exists(path)),
    )


def limits_of_each(policy: SandboxPolicy) -> Iterable[tuple[int, int]]:
    """What each single process may take, whatever a group of them may."""
    return (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_DATA, policy.limits.memory_bytes),
        (resource.RLIMIT_FSIZE, policy.limits.file_bytes),
        (resource.RLIMIT_NOFILE, policy.limits.open_files),
    )


def _file(content: bytes, undo: ExitStack) -> int:
    """A file without a name, that begins with its content."""
    descriptor = os.memfd_create("holdfast", os.MFD_CLOEXEC)
    undo.callback(os.close, descriptor)
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
