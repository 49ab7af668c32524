"""Copy a project for a draft, and list what cannot be copied.

Links are not followed and hard links are not preserved: a write in place to a shared inode would
reach the project. Files that change during the copy are copied again.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from holdfast.confine import is_stand_in
from holdfast.workbench.coverage import EVERYTHING, uncovered_reason
from holdfast.workbench.diff.tree_changes import nearest
from holdfast.workbench.failures import ReflinkUnavailable, WorktreeUncovered
from holdfast.workbench.git.repository import pointed_to
from holdfast.workbench.model import ProgressCallback, UncoveredPath, UncoveredReason, WorkProgress
from holdfast.workbench.scan.directory import list_names, mounted_below
from holdfast.workbench.scan.file_content import TRIES_MAX, raise_resource_error, read_xattrs
from holdfast.workbench.scan.stat_cache import stat_line
from holdfast.world import disk_failure

_FICLONE: Final = 0x4004_9409
_AT_ONCE: Final = 1 << 20
_NOT_HERE: Final = {errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY}


def reflink(source: int, target: int) -> None:
    """Share the extents of another file (FICLONE); raises OSError if unsupported."""
    fcntl.ioctl(target, _FICLONE, source)


def copy_data(source: int, target: int, size: int) -> None:
    """Copy `size` bytes into an empty file, preserving holes."""
    for start, end in _written(source, size):
        at = start
        while at < end:
            taken = _copied(source, target, at, min(end - at, _AT_ONCE))
            if not taken:
                # Truncated meanwhile; the caller compares stat results.
                return
            at += taken
    os.ftruncate(target, size)


def sync_all(directory: int) -> None:
    """Sync the whole file system of a directory (syncfs)."""
    if sys.platform != "linux":
        os.sync()
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(directory) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _copied(source: int, target: int, at: int, count: int) -> int:
    if sys.platform == "linux":
        try:
            return os.copy_file_range(source, target, count, at, at)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
    data = os.pread(source, count, at)
    done = 0
    while done < len(data):
        done += os.pwrite(target, data[done:], at + done)
    return done


def _written(source: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the data extents of a file, without holes."""
    at = 0
    while at < size:
        try:
            start = os.lseek(source, at, os.SEEK_DATA)
            at = min(os.lseek(source, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:
                # No data after this offset.
                return
            if error.errno != errno.EINVAL:
                raise
            # SEEK_DATA is not supported.
            start, at = at, size
        if start < at:
            yield start, at


_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_ENTER = _OPEN | os.O_DIRECTORY
_MAKE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GONE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO}
_NO_SHARING: Final = {errno.EXDEV, errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS}
_PROGRESS_EVERY: Final = 1000
_POINTER_BYTES_MAX: Final = 1 << 16


def copy_project(
    project: Path, copy: Path, *, shares: bool, on_progress: ProgressCallback
) -> tuple[UncoveredPath, ...]:
    """Make a durable copy; return paths that are not in it, with reasons.

    With `shares` the copy shares extents with the project; raises ReflinkUnavailable if that is not
    possible. Raises WorktreeUncovered if git in the copy would write to the project's repository.
    """
    copying = _ProjectCopy(project, shares=shares, on_progress=on_progress)
    try:
        with ExitStack() as opened:
            source = os.open(project, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            opened.callback(os.close, source)
            os.mkdir(copy, 0o700)
            target = os.open(copy, _ENTER)
            opened.callback(os.close, target)
            copying.run(source, target)
            sync_all(target)
    except OSError as error:
        raise disk_failure(error, path=str(copy)) from error
    return tuple(copying.left_out)


class _Gone(Exception):
    """It is not there any more."""


class _Unreadable(Exception):
    """We may not read it."""


class _ProjectCopy:
    def __init__(self, project: Path, *, shares: bool, on_progress: ProgressCallback) -> None:
        self.left_out: list[UncoveredPath] = []
        self._project = str(project)
        self._shares = shares
        self._on_progress = on_progress
        self._device = 0
        self._mounted: frozenset[bytes] = frozenset()
        self._done = 0

    def run(self, source: int, target: int) -> None:
        status = os.fstat(source)
        self._device = status.st_dev
        self._mounted = mounted_below(source)
        self._fill_directory(source, target, b"")
        _apply_metadata(source, target, status)

    def _fill_directory(self, source: int, target: int, path: bytes) -> None:
        for name, way in list_names(source, path):
            try:
                reason = self._copy(source, target, name, way)
            except _Gone:
                continue
            except _Unreadable:
                reason = UncoveredReason.UNREADABLE
            if reason is not None:
                self.left_out.append(UncoveredPath(nearest(way), reason))
            self._done += 1
            if self._done % _PROGRESS_EVERY == 0:
                self._on_progress(WorkProgress("copy", self._done))

    def _copy(self, source: int, target: int, name: bytes, way: bytes) -> UncoveredReason | None:
        """Copy one entry; return the reason if it is not covered."""
        with _reading(way):
            status = os.stat(name, dir_fd=source, follow_symlinks=False)
        is_other_mount = status.st_dev != self._device or way in self._mounted
        reason = uncovered_reason(
            way, status.st_mode, is_other_mount=is_other_mount, coverage=EVERYTHING
        )
        if reason is not None:
            return reason
        if stat.S_ISLNK(status.st_mode):
            self._copy_link(source, target, name, status)
            return None
        if not stat.S_ISDIR(status.st_mode):
            if is_stand_in(os.fsdecode(way), status.st_mode, status.st_size):
                return None
            return self._copy_file(source, target, name)
        with ExitStack() as opened:
            with _reading(way):
                here = os.open(name, _ENTER, dir_fd=source)
            opened.callback(os.close, here)
            os.mkdir(name, 0o700, dir_fd=target)
            there = os.open(name, _ENTER, dir_fd=target)
            opened.callback(os.close, there)
            self._fill_directory(here, there, way)
            _apply_metadata(here, there, status)
            if is_stand_in(os.fsdecode(way), status.st_mode, 0) and not os.listdir(there):
                os.rmdir(name, dir_fd=target)
        return None

    def _copy_link(self, source: int, target: int, name: bytes, status: os.stat_result) -> None:
        with _reading(name):
            spelled = os.readlink(name, dir_fd=source)
        if name == b".git":
            self._refuse_pointer(spelled)
        os.symlink(spelled, name, dir_fd=target)
        with _ignore_unmapped_owner():
            os.chown(name, status.st_uid, status.st_gid, dir_fd=target, follow_symlinks=False)
        times = (status.st_atime_ns, status.st_mtime_ns)
        os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)

    def _copy_file(self, source: int, target: int, name: bytes) -> UncoveredReason | None:
        for _ in range(TRIES_MAX):
            with ExitStack() as opened:
                with _reading(name):
                    here = os.open(name, _OPEN, dir_fd=source)
                opened.callback(os.close, here)
                before = os.fstat(here)
                if not stat.S_ISREG(before.st_mode):
                    return UncoveredReason.CHANGING
                there = os.open(name, _MAKE, 0o600, dir_fd=target)
                opened.callback(os.close, there)
                self._copy_content(here, there, before.st_size)
                if name == b".git":
                    self._refuse_pointer(pointed_to(os.pread(here, _POINTER_BYTES_MAX, 0)))
                if stat_line(os.fstat(here)) == stat_line(before):
                    _apply_metadata(here, there, before)
                    return None
                os.unlink(name, dir_fd=target)
        return UncoveredReason.CHANGING

    def _copy_content(self, here: int, there: int, size: int) -> None:
        if not self._shares:
            copy_data(here, there, size)
            return
        try:
            reflink(here, there)
        except OSError as error:
            if error.errno in _NO_SHARING:
                reason = os.strerror(error.errno)
                raise ReflinkUnavailable(project=self._project, reason=reason) from error
            if error.errno != errno.EINVAL:
                # This file cannot be reflinked: copy it.
                raise
            copy_data(here, there, size)

    def _refuse_pointer(self, pointed: bytes | None) -> None:
        """Refuse a `.git` that points to an absolute path, which the copy would share."""
        if pointed is not None and pointed.startswith(b"/"):
            raise WorktreeUncovered(
                project=self._project,
                outside=os.fsdecode(pointed),
                reason="a copy would refer to it, too",
            )


@contextmanager
def _reading(path: bytes) -> Generator[None]:
    """Translate errors of the source; errors of the copy pass through."""
    try:
        yield
    except PermissionError as error:
        raise _Unreadable from error
    except OSError as error:
        raise_resource_error(error, path)
        if error.errno not in _GONE:
            raise
        raise _Gone from error


@contextmanager
def _ignore_unmapped_owner() -> Generator[None]:
    """Ignore failures to set an owner that is not permitted or not mapped here."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EINVAL}:
            raise


def _apply_metadata(source: int, target: int, status: os.stat_result) -> None:
    """Copy owner, attributes, mode and times."""
    with _ignore_unmapped_owner():
        os.fchown(target, status.st_uid, status.st_gid)
    for name, value in read_xattrs(source):
        with suppress(PermissionError, NotImplementedError):
            os.setxattr(target, name, value)
    os.fchmod(target, stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
