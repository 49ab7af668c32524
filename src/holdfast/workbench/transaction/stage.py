"""Stage of a transaction: a directory in the project with one slot for each operation.

It lies in the project so that rename(2) works between a slot and any path. New entries get owner,
attributes, mode and times there, and are read back: what the file system cannot represent is found
before any path is changed.
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

Owner = tuple[int, int]
"""User and group id; -1 leaves that of the creating process."""

_CREATOR: Final = (-1, -1)


class Owners:
    """Owner of new entries: as the entry they replace, else as their directory."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[RelativePath, os.stat_result] = {}
        self._around: dict[RelativePath | None, os.stat_result | None] = {}

    def note(self, path: RelativePath, status: os.stat_result) -> None:
        """Record the stat result of a path."""
        self._seen[path] = status

    def of(self, path: RelativePath) -> Owner:
        """Return the owner for a new entry at a path; raises OSError."""
        replaced = self._seen.get(path)
        if replaced is not None:
            return replaced.st_uid, replaced.st_gid
        parent = path.parent
        if parent not in self._around:
            self._around[parent] = self._status(parent)
        around = self._around[parent]
        if around is None:
            # The parent is new as well.
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
# Descriptors waiting for fsync; far below RLIMIT_NOFILE.
_OPEN_MAX: Final = 128
_NOT_OURS_TO_GIVE: Final = {
    errno.EPERM,
    errno.EINVAL,
}
_PROBES: Final = (b"one", b"other")
_READABLE: Final = 0o400
_HOLE_BYTES: Final = 1 << 16
_ZEROS: Final = bytes(_HOLE_BYTES)

EXCHANGING: Final[set[int]] = set()
"""Devices on which RENAME_EXCHANGE has worked in this process, so that it is not probed again."""


class MetadataNotKept(OSError):
    """The file system accepted metadata and stored something else."""


class StageDirectory:
    """Stage below an open root directory; all methods raise OSError."""

    def __init__(self, root: int, name: str) -> None:
        self._root = root
        self._name = os.fsencode(name)
        self._directory: int | None = None
        self._waiting: list[int] = []
        self._kept: set[tuple[int, Xattrs]] = set()
        self._ours: set[Owner] = set()

    def exists(self) -> bool:
        try:
            os.stat(self._name, dir_fd=self._root, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def make(self) -> None:
        """Create an empty stage, replacing an old one; default ACLs are not inherited."""
        try:
            os.mkdir(self._name, 0o700, dir_fd=self._root)
        except FileExistsError:
            self.drop()
            os.mkdir(self._name, 0o700, dir_fd=self._root)
        with suppress(OSError):
            # No default ACL, or ACLs are unsupported.
            os.removexattr(self._open(), _INHERITED)

    def try_exchange(self) -> None:
        """Probe RENAME_EXCHANGE, once per device; raises ExchangeMissing."""
        directory = self._open()
        device = os.fstat(directory).st_dev
        if device in EXCHANGING:
            return
        one, other = (NameAt(directory, name) for name in _PROBES)
        for probe in _PROBES:
            # Files: directories take five times as long.
            os.close(os.open(probe, _CREATE, 0o600, dir_fd=directory))
        exchange(one, other)
        for probe in _PROBES:
            os.unlink(probe, dir_fd=directory)
        EXCHANGING.add(device)

    def exchange(self, one: NameAt, other: NameAt) -> None:
        """Exchange two names; on ExchangeMissing the next stage probes again."""
        try:
            exchange(one, other)
        except ExchangeMissing:
            EXCHANGING.discard(os.fstat(self._open()).st_dev)
            raise

    def slot(self, number: int) -> NameAt:
        """Return the name of a slot; raises FileNotFoundError without a stage."""
        directory = self._directory
        return NameAt(self._open() if directory is None else directory, b"%d" % number)

    def slots(self) -> list[NameAt]:
        """Return all slots in use."""
        try:
            directory = self._open()
        except FileNotFoundError:
            return []
        return [NameAt(directory, os.fsencode(name)) for name in sorted(os.listdir(directory))]

    def drop(self) -> None:
        """Remove the stage with its contents; idempotent."""
        self.close()
        remove_beneath(self._root, self._name)

    def write_file(
        self, at: NameAt, entry: PathEntry, pieces: Iterable[bytes], owner: Owner
    ) -> None:
        """Create a file; durable after `sync`."""
        if not entry.mode & _READABLE and os.geteuid() != 0:
            # An unreadable file could not be verified after the exchange.
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        descriptor = os.open(at.name, _CREATE, 0o600, dir_fd=at.directory)
        self._waiting.append(descriptor)
        _write_all(descriptor, pieces)
        self._apply_metadata(descriptor, entry, owner)
        # Starts writeback early; the fsync of many files then overlaps.
        start_writing(descriptor)
        if len(self._waiting) >= _OPEN_MAX:
            self._sync_waiting()

    def make_link(self, at: NameAt, entry: PathEntry, owner: Owner) -> None:
        """Create a symbolic link; durable after `sync`."""
        os.symlink(entry.target, at.name, dir_fd=at.directory)
        if not self._is_ours(owner):
            _own(partial(os.chown, at.name, dir_fd=at.directory, follow_symlinks=False), owner)
        if entry.mtime_ns:
            times = (entry.mtime_ns, entry.mtime_ns)
            os.utime(at.name, ns=times, dir_fd=at.directory, follow_symlinks=False)

    def make_directory(self, at: NameAt, entry: PathEntry, owner: Owner) -> None:
        """Create an empty directory, replacing an empty one; durable after `sync`."""
        with suppress(FileNotFoundError):
            os.rmdir(at.name, dir_fd=at.directory)
        os.mkdir(at.name, 0o700, dir_fd=at.directory)
        descriptor = os.open(at.name, _OPEN, dir_fd=at.directory)
        self._waiting.append(descriptor)
        self._apply_metadata(descriptor, entry, owner)

    def sync(self) -> None:
        """Sync all created entries, and the stage directory."""
        self._sync_waiting()
        with suppress(FileNotFoundError):
            # A killed process already dropped it.
            os.fsync(self._open())

    def close(self) -> None:
        """Close all descriptors."""
        held = [*self._waiting, *([] if self._directory is None else [self._directory])]
        self._waiting, self._directory = [], None
        for descriptor in held:
            with suppress(OSError):
                # Synced already, or abandoned.
                os.close(descriptor)

    def _open(self) -> int:
        if self._directory is None:
            self._directory = os.open(self._name, _OPEN, dir_fd=self._root)
        return self._directory

    def _is_ours(self, owner: Owner) -> bool:
        """Whether new entries get this owner without chown."""
        if not self._ours:
            self._ours = {*product((-1, os.geteuid()), (-1, os.getegid()))}
        return owner in self._ours

    def _apply_metadata(self, descriptor: int, entry: PathEntry, owner: Owner) -> None:
        """Set owner, attributes, mode and mtime, and verify mode and attributes."""
        if not self._is_ours(owner):
            _own(partial(os.fchown, descriptor), owner)
        for name, value in entry.xattrs:
            os.setxattr(descriptor, name, value)
        os.fchmod(descriptor, entry.mode)
        if entry.mtime_ns:
            os.utime(descriptor, ns=(entry.mtime_ns, entry.mtime_ns))
        if (entry.mode, entry.xattrs) in self._kept:
            # Verified before on this file system.
            return
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if mode != entry.mode or read_xattrs(descriptor) != entry.xattrs:
            raise MetadataNotKept(
                errno.ENOTSUP, "the file system cannot keep its mode or attributes"
            )
        self._kept.add((entry.mode, entry.xattrs))

    def _sync_waiting(self) -> None:
        while self._waiting:
            # Not fdatasync: the mode must be durable with the content.
            os.fsync(self._waiting[0])
            os.close(self._waiting.pop(0))


def adjust(directory: int, have: PathEntry, want: PathEntry) -> None:
    """Change differing mode and attributes of an open directory; raises OSError."""
    # An O_PATH descriptor needs no permission to open, but is changed only through /proc.
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

    The store does not record holes, so all long runs of zeros become holes, as with `cp
    --sparse=always`.
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
    if has_holes:
        # A hole at the end has no write that extends the file.
        os.ftruncate(descriptor, os.lseek(descriptor, 0, os.SEEK_CUR))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        taken = os.write(descriptor, data)
        if taken == 0:
            raise OSError(errno.EIO, "write returned 0")
        data = data[taken:]


def _own(give: Callable[[int, int], None], owner: Owner) -> None:
    """Set the owner, else only the group, else keep ours."""
    user, group = owner
    for attempt in ((user, group), (-1, group)):
        try:
            give(*attempt)
        except OSError as error:
            if error.errno not in _NOT_OURS_TO_GIVE:
                raise
        else:
            return
