"""Time and chance that a test decides, in place of the machine's."""

from __future__ import annotations

import errno
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from holdfast.world.errors import disk_failure
from holdfast.world.ports import FileStatus


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._elapsed = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as last set."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that it was advanced by, all together."""
        return self._elapsed

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        assert seconds >= 0.0, "time passes in one direction"
        self._now += seconds
        self._elapsed += seconds

    def set(self, now: float) -> None:
        """Set the wall clock, forward or back, as a person might; no time passes."""
        self._now = now


class SeededRandomSource:
    """Draws the same from the same seed; never fit for secrets."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def fraction(self) -> float:
        """The seed's next number of [0, 1)."""
        return self._random.random()

    def draw(self, count: int) -> bytes:
        """The seed's next bytes."""
        return self._random.randbytes(count)


# A disk in memory that loses, in a crash, what a real one may lose.


class SimulatedPowerLoss(BaseException):
    """The machine went dark in the middle of an operation; no program handles this."""


@dataclass(slots=True)
class DiskFaults:
    """Faults to inject, by the number of the operation, counted from 1."""

    errors: dict[int, int] = field(default_factory=dict[int, int])
    short_writes: set[int] = field(default_factory=set[int])
    power_lost: int | None = None


@dataclass(slots=True, eq=False)
class _Inode:
    """A file: what of it is durable, and every state it has had since."""

    number: int
    kept: bytes = b""
    states: list[bytes] = field(default_factory=lambda: [b""])
    holes: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    holder: CrashingFile | None = None


@dataclass(frozen=True, slots=True)
class _Renaming:
    """A change of names that is not durable yet: `old` loses its file, `new` gets one."""

    old: Path | None
    new: Path | None
    inode: _Inode


class CrashingDisk:
    """Keeps for certain only what was synced; directories exist as soon as they are named.

    In a crash, every file that has unsynced changes falls back to some state since its last sync,
    cut, or with zeros where data was; and of the unsynced changes of names any may be lost. After
    a failed sync, what was not durable then never will be, whatever a later sync says.
    """

    def __init__(self, trouble: DiskFaults | None = None) -> None:
        self.trouble = trouble or DiskFaults()
        self.operations = 0
        self._numbers = 0
        self._names: dict[Path, _Inode] = {}
        self._names_kept: dict[Path, _Inode] = {}
        self._renamings: list[_Renaming] = []

    def crash(self, seed: int) -> CrashingDisk:
        """The disk as it might be found after the power failed now; this one stays as it is."""
        chance, after = Random(seed), CrashingDisk()
        names = dict(self._names_kept)
        for renaming in self._renamings:
            if chance.random() < 0.5:
                _apply(renaming, names)
        inodes = dict.fromkeys(names.values())
        found = {inode: _Inode(inode.number, *_found(inode, chance)) for inode in inodes}
        after._numbers = self._numbers
        after._names = {path: found[inode] for path, inode in names.items()}
        after._names_kept = dict(after._names)
        return after

    def open(self, path: Path) -> CrashingFile:
        """Open a file that exists, to read only."""
        self.begin(path)
        return CrashingFile(self, self._inode(path), path, is_writable=False)

    def open_to_write(self, path: Path) -> CrashingFile:
        """Open a file that exists, to read and append."""
        self.begin(path)
        return CrashingFile(self, self._inode(path), path, is_writable=True)

    def create(self, path: Path, *, mode: int) -> CrashingFile:
        """Make a file where nothing is, to read and append."""
        assert mode & 0o600 == 0o600
        self.begin(path)
        self._check_free(path)
        self._numbers += 1
        inode = _Inode(self._numbers)
        self._rename(None, path, inode)
        return CrashingFile(self, inode, path, is_writable=True)

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in one step."""
        assert old.parent == new.parent
        self.begin(new)
        self._rename(old, new, self._inode(old))

    def link(self, old: Path, new: Path) -> None:
        """Give a file a second name, where nothing is."""
        self.begin(new)
        self._check_free(new)
        self._rename(None, new, self._inode(old))

    def unlink(self, path: Path) -> None:
        """Take a name away."""
        self.begin(path)
        self._rename(path, None, self._inode(path))

    def sync_directory(self, path: Path) -> None:
        """Make the names in a directory durable."""
        self.begin(path)
        waiting, self._renamings = self._renamings, []
        for renaming in waiting:
            if (renaming.new or renaming.old or path).parent == path:
                _apply(renaming, self._names_kept)
            else:
                self._renamings.append(renaming)

    def names(self, path: Path) -> list[str]:
        """The names in a directory, sorted."""
        self.begin(path)
        return sorted(name.name for name in self._names if name.parent == path)

    def is_named(self, path: Path, inode: _Inode) -> bool:
        """Whether a name leads to a file."""
        return self._names.get(path) is inode

    def fresh_word(self) -> str:
        """A random word for a file name; never returned twice."""
        self._numbers += 1
        return f"{self._numbers:04x}"

    def begin(self, path: Path) -> None:
        """Count one more operation, and fail it if that was asked for."""
        self.operations += 1
        if self.trouble.power_lost is not None and self.operations >= self.trouble.power_lost:
            raise SimulatedPowerLoss
        if (number := self.trouble.errors.get(self.operations)) is not None:
            _fail(number, path)

    def _inode(self, path: Path) -> _Inode:
        if path not in self._names:
            _fail(errno.ENOENT, path)
        return self._names[path]

    def _check_free(self, path: Path) -> None:
        if path in self._names:
            _fail(errno.EEXIST, path)

    def _rename(self, old: Path | None, new: Path | None, inode: _Inode) -> None:
        renaming = _Renaming(old, new, inode)
        _apply(renaming, self._names)
        self._renamings.append(renaming)


class CrashingFile:
    """A file of a crashing disk, held open."""

    def __init__(self, disk: CrashingDisk, inode: _Inode, path: Path, *, is_writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._is_writable = is_writable
        self._is_open = True

    def append(self, data: bytes) -> int:
        """Write at the end and return how much was taken."""
        self._begin(writes=True)
        if self._disk.operations in self._disk.trouble.short_writes:
            data = data[: len(data) // 2]
        self._inode.states.append(self._inode.states[-1] + data)
        return len(data)

    def read(self, size: int, *, at: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        self._begin()
        return self._inode.states[-1][at : at + size]

    def truncate(self, size: int) -> None:
        """Cut the file to this size."""
        self._begin(writes=True)
        self._inode.states.append(self._inode.states[-1][:size].ljust(size, b"\0"))
        self._inode.holes = [(start, end) for start, end in self._inode.holes if start < size]

    def sync(self) -> None:
        """Make the file durable."""
        self.sync_data()

    def sync_data(self) -> None:
        """Make what was written durable, unless that has failed before."""
        inode, now = self._inode, self._inode.states[-1]
        if self._disk.operations + 1 in self._disk.trouble.errors:
            inode.holes.append((_common_length(inode.kept, now), len(now)))
        self._begin()
        inode.kept, inode.states = now, [now]

    def status(self) -> FileStatus:
        """Say which file this is."""
        self._begin()
        return FileStatus(1, self._inode.number, len(self._inode.states[-1]))

    def is_still(self, size: int) -> bool:
        """Whether its name still leads to this very file, and it is exactly this long."""
        self._begin()
        is_named = self._disk.is_named(self._path, self._inode)
        return is_named and len(self._inode.states[-1]) == size

    def lock(self) -> bool:
        """Take the file for this opening alone, until it is closed; False if another has it."""
        self._begin()
        self._inode.holder = self._inode.holder or self
        return self._inode.holder is self

    def close(self) -> None:
        """Close the file; may be called again."""
        self._is_open = False
        if self._inode.holder is self:
            self._inode.holder = None

    def _begin(self, *, writes: bool = False) -> None:
        self._disk.begin(self._path)
        if not self._is_open or (writes and not self._is_writable):
            _fail(errno.EBADF, self._path)


def _fail(number: int, path: Path) -> None:
    raise disk_failure(OSError(number, os.strerror(number)), path=str(path))


def _apply(renaming: _Renaming, names: dict[Path, _Inode]) -> None:
    if renaming.old is not None:
        names.pop(renaming.old, None)
    if renaming.new is not None:
        names[renaming.new] = renaming.inode


def _found(inode: _Inode, chance: Random) -> tuple[bytes, list[bytes]]:
    """What a crash leaves of a file."""
    state = chance.choice([inode.kept, *inode.states])
    safe = _common_length(inode.kept, state)
    if len(state) > safe:
        cut, end = sorted((chance.randint(safe, len(state)), chance.randint(safe, len(state))))
        state = chance.choice(
            [
                state,
                state[:cut],
                state[:cut] + bytes(len(state) - cut),
                state[:cut] + bytes(end - cut) + state[end:],
            ]
        )
    for start, end in inode.holes:
        end = min(end, len(state))
        if start < end and chance.random() < 0.5:
            state = state[:start] + bytes(end - start) + state[end:]
    return state, [state]


def _common_length(one: bytes, other: bytes) -> int:
    differing = (at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differing, min(len(one), len(other)))
