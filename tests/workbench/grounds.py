"""Trees of real files, and a project in which transactions take place."""

from __future__ import annotations

import errno
import os
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from holdfast.confine import kernel, restrict
from holdfast.workbench.model import STAGE_PREFIX, PathChange, ProgressCallback, ignore_progress
from holdfast.workbench.store.store import CheckpointSource, Store
from holdfast.workbench.transaction.executor import Executor
from holdfast.workbench.transaction.machine import (
    Marker,
    Purpose,
    Step,
    StepGenerator,
    TransactionOutcome,
    TransactionState,
    plan_operations,
    publish,
)
from holdfast.workbench.transaction.site import TransactionSite
from holdfast.workbench.transaction.stage import EXCHANGING
from holdfast.workbench.transaction.transaction import execute, recover
from holdfast.workbench.tree_removal import remove_whole
from holdfast.world import SystemDisk
from holdfast.world.openat2 import has_openat2

STAGE = f"{STAGE_PREFIX}0123456789abcdef"
KEY = "the key"


class Thing(NamedTuple):
    """What stands at a path, down to the byte; read by nothing that is tested here."""

    kind: str
    mode: int
    data: bytes = b""  # of a link its target
    xattrs: tuple[tuple[str, bytes], ...] = ()

    @property
    def mtime_ns(self) -> int:
        """A time that says what it belongs to, so that the same things are of the same age."""
        return 1_500_000_000_000_000_000 + crc32(repr(self).encode()) * 1_001


Tree = Mapping[bytes, Thing]


def file(data: bytes, mode: int = 0o644, **xattrs: bytes) -> Thing:
    return Thing("file", mode, data, tuple((f"user.{k}", v) for k, v in sorted(xattrs.items())))


def link(target: bytes) -> Thing:
    return Thing("link", 0o777, target)


def directory(mode: int = 0o755, **xattrs: bytes) -> Thing:
    named = tuple((f"user.{name}", value) for name, value in sorted(xattrs.items()))
    return Thing("directory", mode, b"", named)


def plant(root: Path, tree: Tree) -> None:
    """Make the things of a tree below a directory that is empty."""
    for path in sorted(tree):
        thing, at = tree[path], os.fsencode(root) + b"/" + path
        if thing.kind == "link":
            os.symlink(thing.data, at)
        elif thing.kind == "directory":
            os.mkdir(at)
        else:
            with open(at, "wb") as opened:
                opened.write(thing.data)
        for name, value in thing.xattrs:
            os.setxattr(at, name, value)
    for path in sorted(tree, reverse=True):
        thing, at = tree[path], os.fsencode(root) + b"/" + path
        if thing.kind != "link":
            os.chmod(at, thing.mode)
        os.utime(at, ns=(0, thing.mtime_ns), follow_symlinks=False)


def read(root: Path, *, without: str = STAGE) -> dict[bytes, Thing]:
    """Every thing below a directory; who is another age than its thing is marked by it."""
    found: dict[bytes, Thing] = {}
    for way, directories, files in os.walk(os.fsencode(root)):
        directories[:] = [name for name in directories if os.fsdecode(name) != without]
        for name in [*directories, *files]:
            at = os.path.join(way, name)
            found[os.path.relpath(at, os.fsencode(root))] = _read(at)
    return found


def _read(at: bytes) -> Thing:
    status = os.lstat(at)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return _of_age(Thing("link", mode, os.readlink(at)), status)
    xattrs = tuple((name, os.getxattr(at, name)) for name in sorted(os.listxattr(at)))
    if stat.S_ISDIR(status.st_mode):
        return Thing("directory", mode, b"", xattrs)
    if not stat.S_ISREG(status.st_mode):
        return Thing("special", mode)
    return _of_age(Thing("file", mode, Path(os.fsdecode(at)).read_bytes(), xattrs), status)


def _of_age(thing: Thing, status: os.stat_result) -> Thing:
    return thing if status.st_mtime_ns == thing.mtime_ns else thing._replace(kind="of another age")


@contextmanager
def quick_directory(fallback: Path) -> Iterator[Path]:
    """A directory in memory, where a sync costs nothing, if there is one that keeps attributes."""
    memory = Path("/dev/shm")
    try:
        made = Path(tempfile.mkdtemp(prefix="holdfast-ground-", dir=memory))
        os.setxattr(made, "user.tried", b"")
    except OSError:
        yield fallback
        return
    try:
        yield made
    finally:
        remove_whole(made)


class Ground:
    """A project, its store and its marker below a directory that is empty."""

    def __init__(self, base: Path) -> None:
        self.project = base / "project"
        self.state = base / "state"
        self.told: list[TransactionOutcome] = []
        self._drafts = base / "drafts"
        for path in (self.project, self.state, self._drafts):
            path.mkdir()
        self.root = os.open(self.project, os.O_RDONLY | os.O_DIRECTORY)
        self.relieved = 0
        self.disk: SystemDisk = SystemDisk()

    def close(self) -> None:
        os.close(self.root)

    def move_to(self, project: Path, *, flags: int = os.O_RDONLY) -> None:
        """Have the project elsewhere from now on."""
        os.close(self.root)
        self.project = project
        self.root = os.open(self.project, flags | os.O_DIRECTORY)

    @property
    def site(self) -> TransactionSite:
        return TransactionSite(
            self.root,
            str(self.project),
            STAGE,
            self.state / "marker.json",
            self.disk,
            self._relieve,
        )

    def _relieve(self) -> None:
        self.relieved += 1

    def open_store(self) -> Store:
        return Store.open(self.state)

    def changes(self, after: Tree) -> tuple[PathChange, ...]:
        """What makes another tree of what is in the project now; its contents are kept."""
        draft = self._drafts / str(len(os.listdir(self._drafts)))
        draft.mkdir()
        plant(draft, after)
        with self.open_store() as store:
            now = store.checkpoint(CheckpointSource(self.project, origin=f"now {draft.name}"))
            then = store.checkpoint(CheckpointSource(draft, origin=f"then {draft.name}"))
            return store.changes(now, then)

    def execute(
        self, changes: tuple[PathChange, ...], on_progress: ProgressCallback = ignore_progress
    ) -> TransactionOutcome:
        with self.open_store() as store:
            return execute(
                self.site,
                store,
                changes,
                purpose=Purpose(KEY),
                record_outcome=self.told.append,
                on_progress=on_progress,
            )

    def recover(self) -> TransactionOutcome | None:
        with self.open_store() as store:
            return recover(self.site, store, record_outcome=self.told.append)

    def drive(
        self,
        changes: tuple[PathChange, ...],
        meanwhile: Callable[[int, Step], None],
        *,
        can_exchange: bool = True,
    ) -> TransactionOutcome:
        """Carry changes out, and do something before each act."""
        operations = plan_operations(changes, can_exchange=can_exchange)
        marker = Marker(KEY, TransactionState.PREPARED, operations)
        with (
            self.open_store() as store,
            Executor(self.site, store, marker, self.told.append, ignore_progress) as hand,
        ):
            return drive(publish(operations, KEY), hand, meanwhile)

    def tree(self) -> dict[bytes, Thing]:
        return read(self.project)

    def is_tidy(self) -> bool:
        """Whether nothing of ours is left, neither in the project nor beside the store."""
        left = {*os.listdir(self.project), *os.listdir(self.state)}
        return not [name for name in left if name == STAGE or "marker" in name]


_counted = count()


@contextmanager
def fresh_ground(base: Path) -> Iterator[Ground]:
    """A ground of its own below a directory; it is gone afterwards."""
    made = base / f"{next(_counted)}"
    made.mkdir()
    ground = Ground(made)
    try:
        yield ground
    finally:
        ground.close()
        remove_whole(made)


def drive(
    run: StepGenerator, hand: Executor, meanwhile: Callable[[int, Step], None]
) -> TransactionOutcome:
    """Carry a run out, and do something before each act."""
    act = next(run)
    for moment in range(1_000_000):
        meanwhile(moment, act)
        try:
            act = run.send(hand.execute(act))
        except StopIteration as end:
            outcome = end.value
            assert isinstance(outcome, TransactionOutcome)
            return outcome
    raise AssertionError("it never ends")


def fork(work: Callable[[], object]) -> int:
    """Do something in a process of its own, which ends with it; answer which process."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def in_child(work: Callable[[], object]) -> int:
    """Do something in a process of its own; answer how that ended."""
    return os.waitstatus_to_exitcode(os.waitpid(fork(work), 0)[1])


_RENAMEAT2 = {"x86_64": 316, "aarch64": 276}
_OPENAT2 = 437
_LOAD, _JUMP_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000


def live_in_the_past() -> None:
    """Be a process of a system that has neither `renameat2` nor `openat2`, for good."""
    numbers = (_RENAMEAT2[os.uname().machine], _OPENAT2)
    steps = [
        (_LOAD, 0, 0, 0),
        *((_JUMP_EQUAL, len(numbers) - at, 0, number) for at, number in enumerate(numbers)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
    ]
    kernel.forbid_new_privileges()
    restrict.filter_calls(b"".join(struct.pack("HBBI", *step) for step in steps))
    has_openat2.cache_clear()
    EXCHANGING.clear()
    assert not has_openat2()
