"""Decide whether what is written to the state directory will still be there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import NamedTuple

from holdfast.app.doctor.model import Finding, Machine, Refused, Status
from holdfast.app.doctor.remedies import install

# Find out which filesystem a path lies on, from the text of `/proc/self/mountinfo`.

_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mount(NamedTuple):
    """A mounted filesystem."""

    point: str
    kind: str
    options: tuple[str, ...] = ()


def mount_of(path: str, mountinfo: str) -> Mount | None:
    """The mount that an absolute, resolved path lies on; the last one mounted there wins."""
    found: Mount | None = None
    for line in mountinfo.splitlines():
        mount = _parse(line)
        if mount is None or not _covers(mount.point, path):
            continue
        if found is None or len(mount.point) >= len(found.point):
            found = mount
    return found


def _parse(line: str) -> Mount | None:
    """Fields before ` - `: ids, root, mount point, options; after it: type, source, options."""
    before, _, after = line.partition(" - ")
    place, filesystem = before.split(), after.split()
    if len(place) < 6 or len(filesystem) < 3:
        return None
    options = (*place[5].split(","), *filesystem[2].split(","))
    point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), place[4])
    return Mount(point, filesystem[0], options)


def _covers(point: str, path: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def cgroup_directory(membership: str, mountinfo: str) -> str | None:
    """Where the control group of a process lies, from the text of its `/proc/…/cgroup`."""
    inside = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    mounts = (_parse(line) for line in mountinfo.splitlines())
    root = next((mount.point for mount in mounts if mount and mount.kind == "cgroup2"), None)
    if inside is None or root is None:
        return None
    return root.rstrip("/") + inside


FSYNC_FASTEST = 20e-6  # seconds; no disk that waits for its medium answers faster
SPACE_LEAST, SPACE_WANTED = 100 << 20, 1 << 30
INODES_WANTED = 10_000
CLOCK_SKEW_LONGEST = 2.0
CLOCK_EARLIEST = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
CLOCK_LATEST = datetime(2100, 1, 1, tzinfo=UTC).timestamp()

_IN_MEMORY = {"tmpfs", "ramfs", "devtmpfs", "rootfs"}
_ELSEWHERE = {"9p", "nfs", "nfs4", "cifs", "smb3", "virtiofs", "vboxsf", "ceph", "fuse.sshfs"}
_NO_BARRIERS = {"nobarrier", "barrier=0"}


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory, or the nearest one above it that exists."""

    exists: bool
    is_ours: bool
    mode: int


@dataclass(frozen=True, slots=True)
class Syncing:
    """How long a small write took to be called durable, in seconds, and where."""

    median: float
    samples: int
    place: str


@dataclass(frozen=True, slots=True)
class Space:
    """What is free in the state directory; a filesystem without inodes reports 0 of 0."""

    bytes_free: int
    inodes_free: int
    inodes_total: int


@dataclass(frozen=True, slots=True)
class Clock:
    """What the system says the time is, and what a file written just then says."""

    now: float
    file_time: float


def judge_home(facts: Home | Refused, *, wanted: str) -> Finding:
    """The state directory is ours alone, and can be written."""
    if isinstance(facts, Refused):
        text = f"{wanted} cannot be written ({facts.reason})"
        return Finding(Status.FAILED, text, "export HOLDFAST_HOME=/a/directory/of/yours")
    if facts.exists and not facts.is_ours:
        text = f"{wanted} belongs to someone else"
        return Finding(Status.FAILED, text, "export HOLDFAST_HOME=/a/directory/of/yours")
    if facts.exists and facts.mode & 0o077:
        text = f"{wanted} is open to others (mode {facts.mode:04o})"
        return Finding(Status.WARNING, text, f"chmod 700 '{wanted}'")
    return Finding(Status.OK, wanted if facts.exists else f"{wanted} (will be made)")


def judge_syncing(facts: Syncing | Refused, mountinfo: str, *, preload: str) -> Finding:
    """An acknowledged write survives a power cut."""
    if isinstance(facts, Refused):
        return untried(facts, otherwise=Status.FAILED)
    if "eatmydata" in preload:
        text = "eatmydata is loaded and turns fsync off: a power cut loses work"
        return Finding(Status.WARNING, text, "unset LD_PRELOAD")
    mount = mount_of(facts.place, mountinfo) or Mount(point="/", kind="the disk")
    took = _time(facts.median)
    doubt = _doubt(mount)
    if doubt is None and facts.median < FSYNC_FASTEST:
        doubt = f"fdatasync answers in {took}, faster than any disk: something pretends"
    if doubt is not None:
        remedy = "Set HOLDFAST_HOME to a directory on a local disk, mounted with barriers."
        return Finding(Status.WARNING, doubt, remedy)
    return Finding(Status.OK, f"fdatasync on {mount.kind} takes {took} (median of {facts.samples})")


def _doubt(mount: Mount) -> str | None:
    """Why a sync on this filesystem may be called done without being so."""
    if mount.kind in _IN_MEMORY:
        return f"{mount.kind} lives in memory: a restart loses everything"
    if mount.kind in _ELSEWHERE:
        return f"{mount.kind} is kept by another machine; whether it syncs cannot be seen"
    if _NO_BARRIERS.intersection(mount.options):
        return f"{mount.kind} is mounted without barriers: a power cut may lose work"
    return None


def judge_space(facts: Space | Refused) -> Finding:
    """There is room to write down what must not be lost."""
    if isinstance(facts, Refused):
        return Finding(Status.WARNING, f"free space is not known ({facts.reason})")
    text = f"{_amount(facts.bytes_free)} free"
    remedy = "Free some disk space, or set HOLDFAST_HOME to a larger disk."
    if facts.bytes_free < SPACE_LEAST:
        return Finding(Status.FAILED, f"only {text}", remedy)
    if facts.bytes_free < SPACE_WANTED:
        return Finding(Status.WARNING, f"only {text}", remedy)
    if facts.inodes_total and facts.inodes_free < INODES_WANTED:
        text = f"{text}, but room for only {facts.inodes_free:,} more files"
        return Finding(Status.WARNING, text, remedy)
    return Finding(Status.OK, text)


def judge_clock(facts: Clock | Refused) -> Finding:
    """Times that we write down mean something."""
    if isinstance(facts, Refused):
        return untried(facts, otherwise=Status.WARNING)
    date = datetime.fromtimestamp(facts.now, UTC).isoformat(sep=" ", timespec="seconds")
    if not CLOCK_EARLIEST <= facts.now <= CLOCK_LATEST:
        return Finding(Status.WARNING, f"the clock says {date}", "Set the clock of this machine.")
    skew = abs(facts.now - facts.file_time)
    if skew > CLOCK_SKEW_LONGEST:
        text = f"files are dated {skew:.0f} s off the clock"
        return Finding(Status.WARNING, text, "Synchronise the clocks of this machine and its disk.")
    return Finding(Status.OK, date.replace("+00:00", " UTC"))


def untried(refused: Refused, *, otherwise: Status) -> Finding:
    """Without a place to try it in, the state directory's own check says what is wrong."""
    if refused.is_nowhere:
        return Finding(Status.SKIPPED, "needs a state directory that can be written")
    return Finding(otherwise, f"does not work here ({refused.reason})")


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def _amount(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


# Decide whether the interpreter, its SQLite and the settings can carry Holdfast.

PYTHON_OLDEST = (3, 11)
SQLITE_OLDEST = (3, 37, 0)  # strict tables


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The Python that runs us."""

    version: tuple[int, ...]
    implementation: str
    is_64_bit: bool


@dataclass(frozen=True, slots=True)
class Sqlite:
    """The SQLite that Python brought along, tried on a file of its own."""

    version: tuple[int, ...]
    threadsafety: int
    journal: str
    integrity: str


def judge_interpreter(facts: Interpreter, machine: Machine) -> Finding:
    """The interpreter is new enough, and can address large files."""
    text = f"{_dotted(facts.version)} ({facts.implementation})"
    if facts.version < PYTHON_OLDEST:
        return Finding(Status.FAILED, f"{text} is too old", install("python3", machine))
    if not facts.is_64_bit:
        text = f"{text} is a 32-bit build: large files are out of reach"
        return Finding(Status.FAILED, text, "Install a 64-bit Python.")
    return Finding(Status.OK, f"{text}, 64 bit")


def judge_sqlite(facts: Sqlite | Refused, machine: Machine) -> Finding:
    """SQLite keeps a write-ahead log in the state directory, and may be used from a thread."""
    if isinstance(facts, Refused):
        return untried(facts, otherwise=Status.FAILED)
    text = _dotted(facts.version)
    if facts.version < SQLITE_OLDEST:
        text = f"{text} is older than {_dotted(SQLITE_OLDEST)}"
        return Finding(Status.FAILED, text, install("libsqlite3-0", machine))
    if facts.threadsafety == 0:
        text = f"{text} was built without thread safety"
        return Finding(Status.FAILED, text, "Use the Python of your distribution.")
    if facts.journal != "wal" or facts.integrity != "ok":
        text = f"{text} cannot keep a write-ahead log in the state directory"
        return Finding(Status.FAILED, text, "Set HOLDFAST_HOME to a directory on a local disk.")
    return Finding(Status.OK, f"{text}, write-ahead log works")


def judge_variables(unknown: tuple[str, ...], *, known: tuple[str, ...]) -> Finding:
    """No setting is misspelt."""
    if not unknown:
        return Finding(Status.OK, "no unknown variables")
    name = unknown[0]
    nearest = get_close_matches(name, known, n=1)
    hint = f"Did you mean {nearest[0]}?" if nearest else f"unset {name}"
    return Finding(Status.WARNING, f"{', '.join(unknown)} means nothing to Holdfast", hint)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
