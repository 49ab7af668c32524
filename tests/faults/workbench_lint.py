"""Read a trace of system calls, and complain where a marker speaks of what is not durable yet.

File systems that journal carry names along even when nobody synced a directory, so cutting their
power does not show that a sync is missing. Here the rule itself is checked, on what was called:

- before a marker is put in place, every file that was written and every directory in which a
  name was made, moved or removed has been synced;
- after that, nothing else is changed until the directory of the marker has been synced.

The trace is one of `strace -y`, which says of every descriptor which path it leads to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from posixpath import basename, dirname, join, normpath

from holdfast.workbench.model import STAGE_PREFIX

MARKERS = {"marker.json", "marker.committed.json"}
_CALL = re.compile(r"^(?P<name>\w+)\((?P<args>.*)\)\s+= (?P<result>-?\d+)(?P<opened><[^>]*>)?")
_DESCRIPTOR = re.compile(r"^(\d+)<([^>]*)>")
_NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<at>[^>]*)>, )?"(?P<name>(?:[^"\\]|\\.)*)"')
# Nothing rests on these once the power has failed: an index, locks, who holds a place, and which
# directories of the project the mount of a place was refreshed with: all mounts are gone then.
_DERIVED = re.compile(
    r"^/proc/|/(wb\.db(-wal|-shm|-journal)?|lock|place/(holder\.new|holder\.json|ground|layout))$"
)

_WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate"}
_WRITES |= {"fchmod", "fchown", "fsetxattr", "fremovexattr", "copy_file_range", "sendfile"}
_WRITES |= {"utimensat"}
_NAMES_ONE = {"mkdir", "mkdirat", "symlink", "symlinkat", "link", "linkat", "mknodat"}
_REMOVES = {"unlink", "unlinkat", "rmdir"}
_RENAMES = {"rename", "renameat", "renameat2"}


@dataclass(frozen=True, slots=True)
class Traced:
    """One call that succeeded, with the paths that it was about."""

    name: str
    args: str
    result: int
    descriptor: str | None
    paths: tuple[str, ...]
    opened: str | None


def read_trace(trace: str) -> Iterator[Traced]:
    """Every call of a trace that did what was asked."""
    for line in trace.splitlines():
        match = _CALL.match(line)
        if match is None or int(match["result"]) < 0:
            continue
        args = match["args"]
        descriptor = _DESCRIPTOR.match(args)
        opened = match["opened"]
        yield Traced(
            match["name"],
            args,
            int(match["result"]),
            descriptor[2] if descriptor else None,
            tuple(normpath(join(one["at"] or "/", one["name"])) for one in _NAMED.finditer(args)),
            opened[1:-1] if opened else None,
        )


@dataclass(slots=True)
class _Lint:
    files: dict[str, str] = field(default_factory=dict[str, str])
    directories: dict[str, str] = field(default_factory=dict[str, str])
    unsynced_marker: str | None = None
    complaints: list[str] = field(default_factory=list[str])

    def take(self, call: Traced) -> None:
        """Note what a call made and what it made durable."""
        if call.name in {"fsync", "fdatasync", "syncfs"}:
            self._sync(call)
        elif call.name in {"open", "openat", "openat2", "creat"}:
            if "O_CREAT" in call.args and call.opened and call.opened not in self.files:
                self._named(call.opened)
                self._wrote(call.opened)
        elif call.name == "utimensat" and call.paths:
            pass  # of a link, which nobody can sync but with its directory
        elif call.name in _WRITES and call.descriptor:
            self._wrote(call.descriptor)
        elif call.name in _RENAMES:
            self._rename(*call.paths[:2], exchanges="RENAME_EXCHANGE" in call.args)
        elif call.name in _NAMES_ONE:
            self._named(call.paths[-1])
        elif call.name in _REMOVES:
            self.files.pop(call.paths[0], None)
            self.directories.pop(call.paths[0], None)
            self._named(call.paths[0])

    def _sync(self, call: Traced) -> None:
        assert call.descriptor is not None
        self.files.pop(call.descriptor, None)
        self.directories.pop(call.descriptor, None)
        if self.unsynced_marker == call.descriptor:
            self.unsynced_marker = None

    def _wrote(self, path: str) -> None:
        if _DERIVED.search(path) is None and path.startswith("/"):
            self._act(path)
            self.files[path] = f"{path} was written"

    def _named(self, path: str) -> None:
        if _DERIVED.search(path) is None:
            self._act(path)
            self.directories[dirname(path)] = f"{basename(path)} came to or left {dirname(path)}"

    def _rename(self, old: str, new: str, *, exchanges: bool) -> None:
        if basename(new) in MARKERS:
            self._mark(old, new)
            return
        self._named(old)
        self._named(new)
        moved, met = self.files.pop(old, None), self.files.pop(new, None)
        if moved is not None:
            self.files[new] = moved
        if met is not None and exchanges:
            self.files[old] = met

    def _mark(self, old: str, new: str) -> None:
        at = dirname(new)
        pending = [*self.files.values()]
        pending += [what for where, what in self.directories.items() if where != at]
        self.complaints += [f"{what}, and is not synced when the marker is put" for what in pending]
        self.directories.pop(at, None)
        self.unsynced_marker = at

    def _act(self, path: str) -> None:
        if self.unsynced_marker is not None:
            self.complaints.append(f"{path} is touched before the marker is durable")
            self.unsynced_marker = None


def lint(trace: str) -> list[str]:
    """What is not durable although a marker says so; an empty list is a sound run."""
    state = _Lint()
    for call in read_trace(trace):
        state.take(call)
    return state.complaints


def markers_put(trace: str) -> int:
    """How often a marker was put in place: a trace without one proves nothing."""
    return sum(
        call.name in _RENAMES and basename(call.paths[1]) in MARKERS for call in read_trace(trace)
    )


def staged(trace: str) -> int:
    """How many slots of a stage were filled with files."""
    made = (call.opened for call in read_trace(trace) if "O_CREAT" in call.args)
    return sum(STAGE_PREFIX in path and basename(path).isdigit() for path in made if path)
