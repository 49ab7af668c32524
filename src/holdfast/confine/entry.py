"""Start a process in namespaces: fork, setns, chdir by path, drop privileges, exec.

A `ProcessEntry` holds everything that the child does between fork and exec, so that it can be sent
to the keeper as plain data with descriptors. Only the standard library is imported, because the
keeper loads this module. The child inherits nothing that leads outside: it changes to its directory
by path *after* setns, since an inherited working directory would still be the one of the host, and
closes every descriptor that is not listed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

import holdfast.confine.kernel as kernel
import holdfast.confine.restrict as restrict
from holdfast.confine.fence import Fence

_KILL: Final = int(signal.SIGKILL)
_REPORT: Final = struct.Struct("=ci")  # what it is about, and a number
_PID, _CWD, _PROGRAM, _OTHER = b"p", b"c", b"x", b"o"
_LAST_DESCRIPTOR: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """Everything that a process is given, and all that is taken from it, before it runs.

    `files` says which of our descriptors it gets under which number. `namespaces` are descriptors
    in the order in which they are entered: the user's first. `groups` are descriptors of files
    that take the number of who enters a control group. `limits` are (resource, most) pairs. `fence`
    and `filter` hold the process back from paths and from system calls; `shields` are paths that it
    sees read-only. `watch` is a filter that asks a listener about calls; `watcher` is the number,
    among its files, of the socket that receives that listener.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    program: str
    files: Mapping[int, int] = field(default_factory=dict[int, int])
    namespaces: Sequence[int] = ()
    groups: Sequence[int] = ()
    limits: Sequence[tuple[int, int]] = ()
    is_terminal: bool = False
    is_unprivileged: bool = True
    fence: Fence | None = None
    filter: bytes = b""
    shields: Sequence[str] = ()
    watch: bytes = b""
    watcher: int = -1


def enter(entry: ProcessEntry) -> int:
    """Start the process and return its number; the caller waits for it.

    Raises `OSError` with the name of the directory or program if that was the reason. May be
    called only where there is one thread: the forked child runs code of ours.
    """
    hears, tells = os.pipe()
    with open(hears, "rb") as reports:
        # Out of the way of all targets, so that no source is overwritten before it is used.
        above = max((2, *entry.files.values())) + 1
        sources = {
            target: fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, above)
            for source, target in entry.files.items()
        }
        last = fcntl.fcntl(tells, fcntl.F_DUPFD_CLOEXEC, above)
        try:
            between = kernel.fork_bare()
            if between == 0:
                _go(entry, sources, last)
        finally:
            for descriptor in (tells, last, *sources.values()):
                os.close(descriptor)
        told = reports.read()
    pid, failed = between, None
    for about, number in _REPORT.iter_unpack(told):
        if about == _PID:
            os.waitpid(between, 0)
            pid = number
        else:
            failed = about, number
    if failed is None:
        return pid
    os.waitpid(pid, 0)
    about, number = failed
    name = {_CWD: entry.cwd, _PROGRAM: entry.program}.get(about)
    raise OSError(number, os.strerror(number), name)


def _go(entry: ProcessEntry, sources: Mapping[int, int], tells: int) -> NoReturn:
    """Do all that children inherit first: what is done after the second fork costs twice.

    Memory that a forked child touches is copied page by page, and that is what a start costs.
    """
    about = _OTHER
    try:
        for group in entry.groups:
            os.write(group, b"0")
        for namespace in entry.namespaces:
            kernel.join(namespace)
        if entry.shields:
            restrict.shield(entry.shields)
        about = _CWD
        os.chdir(entry.cwd)
        about = _OTHER
        _take_files(sources, tells)
        kernel.default_signals()
        if entry.is_unprivileged:
            kernel.give_up_privileges()
        if entry.namespaces:
            _fork_inside(tells)
        os.setsid()
        _restrict(entry)
        # Last: a change of credentials would forget it.
        kernel.die_with_parent(_KILL)
        about = _PROGRAM
        os.execve(entry.program, tuple(entry.argv), entry.env)
    except OSError as error:
        os.write(tells, _REPORT.pack(about, error.errno or errno.EIO))
    finally:
        os._exit(127)


def _fork_inside(tells: int) -> None:
    """Be born in the namespace of processes that was entered, as the caller's own child."""
    pid = kernel.fork_sibling()
    if pid:
        os.write(tells, _REPORT.pack(_PID, pid))
        os._exit(0)


def _take_files(sources: Mapping[int, int], tells: int) -> None:
    """Take the descriptors that were ordered, and lose every other."""
    first = 0
    for target in sorted(sources):
        os.dup2(sources[target], target, inheritable=True)
        kernel.close_between(first, target - 1)
        first = target + 1
    kernel.close_between(first, tells - 1)
    kernel.close_between(tells + 1, _LAST_DESCRIPTOR)


def _restrict(entry: ProcessEntry) -> None:
    """Take the terminal that was ordered, and all that may not be taken before the last fork."""
    if entry.is_terminal:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for name, most in entry.limits:
        hard = resource.getrlimit(name)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (most, most))
    if entry.fence is not None:
        restrict.stay_within(entry.fence)
    if entry.filter:
        restrict.filter_calls(entry.filter)
    if entry.watch:
        restrict.have_watched(entry.watch, entry.watcher)
