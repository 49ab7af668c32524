"""The stage of a transaction: a directory of ours in the project, with slots.

Each operation has a slot of its own. The stage lies in the project so that a rename leads from a
slot to any path. What is written there gets its owner, attributes, mode and times at once, and
is read back: what a file system cannot keep is found before anything was touched.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Final

from holdfast.nouns import RelativePath
from holdfast.workbench.model import PathEntry
from holdfast.workbench.scan.file_content import Xattrs, read_xattrs
from holdfast.workbench.transaction.atomic_rename import (
    ExchangeMissing,
    NameAt,
    exchange,
    start_writing,
)
from holdfast.workbench.transaction.machine import ACCESS
from holdfast.workbench.transaction.path_state import ABSENT, open_directory
from holdfast.workbench.tree_removal import remove_beneath

# Say whose something new becomes: as what it replaces, else as the directory it comes into.

Owner = tuple[int, int]
"""A user and a group; -1 is whoever makes it."""

_CREATOR: Final = (-1, -1)


class Owners:
    """Who owns what below a directory, as far as somebody has looked."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[RelativePath, os.stat_result] = {}
        self._around: dict[RelativePath | None, os.stat_result | None] = {}

    def note(self, path: RelativePath, status: os.stat_result) -> None:
        """Take note of what stands at a path."""
        self._seen[path] = status

    def of(self, path: RelativePath) -> Owner:
        """Whose something new at a path becomes; raise OSError if nobody can tell."""
        replaced = self._seen.get(path)
        if replaced is not None:
            return replaced.st_uid, replaced.st_gid
        parent = path.parent
        if parent not in self._around:
            self._around[parent] = self._status(parent)
        around = self._around[parent]
        if around is None:  # it is new, too
            return self.of(parent) if parent is not None else _CREATOR
        if os.geteuid() == 0:
            return around.st_uid, around.st_gid
        return -1, around.st_gid if around.st_mode & stat.S_ISGID else -1

    def _status(self, path: RelativePath | None) -> os.stat_result | None:
        try:
            with open_directory(self._root, path) as directory:
                return os.fstat(directory)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise


_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_INHERITED: Final = "system.posix_acl_default"
_OPEN_MAX: Final = 128  # files that wait for their sync; far below what a process may have open
_NOT_OURS_TO_GIVE: Final = {errno.EPERM, errno.EINVAL}  # the latter: unknown in our namespace
_PROBES: Final = (b"one", b"other")
_READABLE: Final = 0o400
_HOLE_BYTES: Final = 1 << 16
_ZEROS: Final = bytes(_HOLE_BYTES)

EXCHANGING: Final[set[int]] = set()
"""The devices on which this process saw names change places, so that it need not try again."""


class MetadataNotKept(OSError):
    """The file system took something and made something else of it."""


class StageDirectory:
    """The stage in a root directory, under one name; every method raises OSError."""

    def __init__(self, root: int, name: str) -> None:
        self._root = root
        self._name = os.fsencode(name)
        self._directory: int | None = None
        self._waiting: list[int] = []
        self._kept: set[tuple[int, Xattrs]] = set()
        self._ours: set[Owner] = set()

    def exists(self) -> bool:
        """Whether anything has the name of the stage."""
        try:
            os.stat(self._name, dir_fd=self._root, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def make(self) -> None:
        """Make an empty stage, whatever was there; what is made in it inherits nothing."""
        try:
            os.mkdir(self._name, 0o700, dir_fd=self._root)
        except FileExistsError:
            self.drop()
            os.mkdir(self._name, 0o700, dir_fd=self._root)
        with suppress(OSError):  # there is nothing to inherit, or nobody knows such a thing
            os.removexattr(self._open(), _INHERITED)

    def try_exchange(self) -> None:
        """Raise ExchangeMissing if names cannot change places here; found out once in a while."""
        directory = self._open()
        device = os.fstat(directory).st_dev
        if device in EXCHANGING:
            return
        one, other = (NameAt(directory, name) for name in _PROBES)
        for probe in _PROBES:  # files: to make and remove directories takes five times as long
            os.close(os.open(probe, _CREATE, 0o600, dir_fd=directory))
        exchange(one, other)
        for probe in _PROBES:
            os.unlink(probe, dir_fd=directory)
        EXCHANGING.add(device)

    def exchange(self, one: NameAt, other: NameAt) -> None:
        """Let two things change places; if they cannot any more, the next stage tries it first."""
        try:
            exchange(one, other)
        except ExchangeMissing:
            EXCHANGING.discard(os.fstat(self._open()).st_dev)
            raise

    def slot(self, number: int) -> NameAt:
        """The name of a slot; raise FileNotFoundError if there is no stage."""
        directory = self._directory
        return NameAt(self._open() if directory is None else directory, b"%d" % number)

    def slots(self) -> list[NameAt]:
        """Every slot with something in it."""
        try:
            directory = self._open()
        except FileNotFoundError:
            return []
        return [NameAt(directory, os.fsencode(name)) for name in sorted(os.listdir(directory))]

    def drop(self) -> None:
        """Remove the stage with all that is in it; repeated after a kill, it goes on."""
        self.close()
        remove_beneath(self._root, self._name)

    def write_file(
        self, at: NameAt, entry: PathEntry, pieces: Iterable[bytes], owner: Owner
    ) -> None:
        """Make a file; it is durable after the next `sync`."""
        if not entry.mode & _READABLE and os.geteuid() != 0:
            # Nobody could ever tell whether it is what was written.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        descriptor = os.open(at.name, _CREATE, 0o600, dir_fd=at.directory)
        self._waiting.append(descriptor)
        _write_all(descriptor, pieces)
        self._apply_metadata(descriptor, entry, owner)
        start_writing(descriptor)
        if len(self._waiting) >= _OPEN_MAX:
            self._sync_waiting()

    def make_link(self, at: NameAt, entry: PathEntry, owner: Owner) -> None:
        """Make a link; it is durable after the next `sync`."""
        os.symlink(entry.target, at.name, dir_fd=at.directory)
        if not self._is_ours(owner):
            _own(partial(os.chown, at.name, dir_fd=at.directory, follow_symlinks=False), owner)
        if entry.mtime_ns:
            times = (entry.mtime_ns, entry.mtime_ns)
            os.utime(at.name, ns=times, dir_fd=at.directory, follow_symlinks=False)

    def make_directory(self, at: NameAt, entry: PathEntry, owner: Owner) -> None:
        """Make an empty directory, also where one is already; durable after the next `sync`."""
        with suppress(FileNotFoundError):
            os.rmdir(at.name, dir_fd=at.directory)
        os.mkdir(at.name, 0o700, dir_fd=at.directory)
        descriptor = os.open(at.name, _OPEN, dir_fd=at.directory)
        self._waiting.append(descriptor)
        self._apply_metadata(descriptor, entry, owner)

    def sync(self) -> None:
        """Make durable all that was made, and the names in the stage."""
        self._sync_waiting()
        with suppress(FileNotFoundError):  # it was dropped by one who was killed
            os.fsync(self._open())

    def close(self) -> None:
        """Let go of it."""
        held = [*self._waiting, *([] if self._directory is None else [self._directory])]
        self._waiting, self._directory = [], None
        for descriptor in held:
            with suppress(OSError):  # what matters was synced, or will not be used
                os.close(descriptor)

    def _open(self) -> int:
        if self._directory is None:
            self._directory = os.open(self._name, _OPEN, dir_fd=self._root)
        return self._directory

    def _is_ours(self, owner: Owner) -> bool:
        """Whether what we make belongs to them already."""
        if not self._ours:
            self._ours = {*product((-1, os.geteuid()), (-1, os.getegid()))}
        return owner in self._ours

    def _apply_metadata(self, descriptor: int, entry: PathEntry, owner: Owner) -> None:
        """Give something new its owner, attributes, mode and time, and see whether they stay."""
        if not self._is_ours(owner):
            _own(partial(os.fchown, descriptor), owner)
        for name, value in entry.xattrs:
            os.setxattr(descriptor, name, value)
        os.fchmod(descriptor, entry.mode)
        if entry.mtime_ns:
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        if (entry.mode, entry.xattrs) in self._kept:
            return  # the same, on the same file system, a moment ago
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode != entry.mode or read_xattrs(descriptor) != entry.xattrs:
            raise MetadataNotKept(
                errno.ENOTSUP, "the file system cannot keep its mode or attributes"
            )
        self._kept.add((entry.mode, entry.xattrs))

    def _sync_waiting(self) -> None:
        while self._waiting:
            os.fsync(self._waiting[0])  # not its bytes alone: its mode must not come later
            os.close(self._waiting.pop(0))


def adjust(directory: int, have: PathEntry, want: PathEntry) -> None:
    """Change what differs of a directory that is open; raise OSError."""
    # A descriptor that needs no permission can only be changed by its name.
    handle = f"/proc/self/fd/{directory}" if hasattr(os, "O_PATH") else directory
    old, new = dict(have.xattrs), dict(want.xattrs)
    for name in old.keys() - new.keys():
        os.removexattr(handle, name)
    for name, value in new.items() - old.items():
        os.setxattr(handle, name, value)
    comes_along = ACCESS in new and old.get(ACCESS) != new[ACCESS]
    if have.mode != want.mode and not comes_along:
        os.chmod(handle, want.mode)


def _write_all(descriptor: int, pieces: Iterable[bytes]) -> None:
    """Write a file, with holes for long runs of zeros.

    The store does not know which zeros were holes; as with `cp --sparse=always` all of them are.
    """
    has_holes = False
    for piece in pieces:
        if len(piece) < _HOLE_BYTES:
            _write(descriptor, piece)
            continue
        for start in range(0, len(piece), _HOLE_BYTES):
            block = piece[start : start + _HOLE_BYTES]
            if block == _ZEROS:
                os.lseek(descriptor, _HOLE_BYTES, os.SEEK_CUR)
                has_holes = True
            else:
                _write(descriptor, block)
    if has_holes:  # a hole at the end has no write that extends the file
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        taken = os.write(descriptor, data)
        if taken == 0:
            raise OSError(errno.EIO, "nothing was taken")
        data = data[taken:]


def _own(give: Callable[[int, int], None], owner: Owner) -> None:
    """Give something to its owner, or at least to the group, or else leave it ours."""
    user, group = owner
    for attempt in ((user, group), (-1, group)):
        try:
            give(*attempt)
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_GIVE:
                raise
        else:
            return
