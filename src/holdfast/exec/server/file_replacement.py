"""Write the new content of a file beside it, then rename it into place.

Until `commit` the old file is untouched: a full disk, a lost connection or a killed server leave
it as it was. The new content is in a file without a name (`O_TMPFILE`) where the file system has
those, so that a kill leaves nothing behind either; else it has a name that begins with
`.holdfast-`. Mode, owner and extended attributes are kept; a link is followed, and what it leads
to is replaced.

Some files can only be written in place, and are:

- devices, pipes and whatever else is not a regular file
- files with several hard links, which would no longer be the same file
- files that are mount points, or whose directory we may not write to
- files whose owner or attributes we may not give to a new file

Of these a regular one first gets the room that it needs, so that a full disk changes nothing. Only
a kill in the middle of the write leaves it half written.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import ExitStack, suppress

from holdfast.exec.ports import PlaceFiles

_NAME = b".holdfast-"
_OPEN = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY
# What a directory answers in which nothing can be made, or from which nothing can be renamed.
_NOT_BESIDE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.EBUSY,
    errno.EXDEV,
    # The name is another's by now: write to what was opened.
    errno.ENOENT,
}
_WITHOUT_TMPFILE = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS}
# The kernel sets or clears these itself.
_NOT_COPIED = ("security.", "trusted.")
_SET_ID = stat.S_ISUID | stat.S_ISGID
_CLEARED_BYTES = 2**20


class Replacement:
    """New content of one file; `commit` installs it, `close` without commit drops it.

    Raises `OSError`. `file` is the descriptor to write to, from offset 0.
    """

    def __init__(self, place: PlaceFiles, path: bytes, *, mode: int | None = None) -> None:
        """`mode` is set on the file; None keeps the old mode, or 0o666 for a new file."""
        self.file = -1
        self.is_in_place = False
        """Whether a regular file is overwritten, because it could not be replaced."""
        self._mode = mode
        self._old: os.stat_result | None = None
        self._parent, self._name, self._beside = -1, b"", b""
        # What has been made under its own name, to be removed on failure.
        self._made = b""
        self._end = 0  # of what was written
        self._place = place
        with ExitStack() as undone:
            undone.callback(self.close)
            self._open(path)
            undone.pop_all()

    def write(self, data: bytes | memoryview, *, at: int) -> None:
        """Write all data at an offset, despite short writes."""
        rest = memoryview(data)
        if self.is_in_place and rest:
            self._reserve(at + len(rest))
            self._clear(self._end, at)
        while rest:
            taken = os.pwrite(self.file, rest, at)
            rest, at = rest[taken:], at + taken
            self._end = max(self._end, at)

    def commit(self) -> None:
        """Install the new content."""
        if self._parent >= 0:
            if self._old is not None:
                # Else a power cut could leave neither the old nor the new.
                os.fsync(self.file)
            self._rename()
        elif self.is_in_place:
            os.ftruncate(self.file, self._end)
        self._beside = self._made = b""
        self.close()

    def close(self) -> None:
        """Drop uncommitted content; idempotent."""
        with suppress(OSError):
            if self._beside:
                os.unlink(self._beside, dir_fd=self._parent)
        with suppress(OSError):
            if self._made:
                self._place.remove(self._made, is_directory=False)
        self._beside = self._made = b""
        for descriptor in (self.file, self._parent):
            if descriptor >= 0:
                os.close(descriptor)
        self.file = self._parent = -1

    def _open(self, path: bytes) -> None:
        try:
            old = self._place.open(path, _OPEN)
        except FileNotFoundError:
            if os.path.basename(path) in (b"", b".", b".."):
                raise
            self._open_new(path)
            return
        self._old = os.fstat(old)
        try:
            if stat.S_ISREG(self._old.st_mode) and self._open_beside(
                self._place.resolve(path), old
            ):
                self._apply_metadata(old)
                os.close(old)
                return
        except OSError as error:
            self._drop_beside()
            if error.errno not in _NOT_BESIDE:
                os.close(old)
                raise
        # The descriptor, and not the path: this is the file that was looked at.
        self.file, self.is_in_place = old, stat.S_ISREG(self._old.st_mode)
        if self.is_in_place and self._mode is not None:
            os.fchmod(old, self._mode)

    def _open_new(self, path: bytes) -> None:
        try:
            self._place.look(path, follow=False)
        except FileNotFoundError:
            mode = 0o666 if self._mode is None else self._mode
            # A sandbox may grant this one name alone.
            with suppress(PermissionError):
                self._hold_parent(path)
                self._make_beside(mode)
                self._change_mode()
                return
            self._drop_beside()
            self.file = self._place.open(path, _OPEN | os.O_CREAT | os.O_TRUNC, mode=mode)
            self._made = path
            return
        # A link that leads nowhere: only the system knows where its target is to be made.
        os.close(self._place.open(path, _OPEN | os.O_CREAT))
        self._made = self._place.resolve(path)
        self._open(path)

    def _open_beside(self, target: bytes, opened: int) -> bool:
        """Create a temporary file beside the target, unless it must be written in place."""
        old = self._old
        assert old is not None, "it was opened"
        if old.st_nlink != 1:
            return False
        self._hold_parent(target)
        here = os.stat(self._name, dir_fd=self._parent, follow_symlinks=False)
        is_same = (here.st_dev, here.st_ino) == (old.st_dev, old.st_ino)
        if not is_same or _mount_of(opened) != _mount_of(self._parent):
            # It was moved away just now, or is mounted on that name.
            self._drop_beside()
            return False
        self._make_beside(stat.S_IMODE(old.st_mode) & ~_SET_ID)
        return True

    def _hold_parent(self, path: bytes) -> None:
        with self._place.parent(path) as (parent, name):
            self._parent, self._name = os.dup(parent), name

    def _make_beside(self, mode: int) -> None:
        self._place.let_change(self._parent, _NAME)
        try:
            # O_RDWR: of a file that can only be written, /proc would let us make no link.
            flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
            self.file = os.open(b".", flags, mode, dir_fd=self._parent)
        except OSError as error:
            if error.errno not in _WITHOUT_TMPFILE:
                raise
            beside = _NAME + secrets.token_hex(8).encode()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self.file = os.open(beside, flags, mode, dir_fd=self._parent)
            self._beside = beside

    def _apply_metadata(self, old: int) -> None:
        before, now = self._old, os.fstat(self.file)
        assert before is not None, "it was opened"
        if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
            os.fchown(self.file, before.st_uid, before.st_gid)
        for name in _attributes(old):
            os.setxattr(self.file, name, os.getxattr(old, name))
        if self._mode is None:
            # As a write would: only root's leaves these bits.
            kept = 0 if os.geteuid() == 0 else _SET_ID
            os.fchmod(self.file, stat.S_IMODE(before.st_mode) & ~kept)
        self._change_mode()

    def _change_mode(self) -> None:
        if self._mode is not None:
            os.fchmod(self.file, self._mode)

    def _rename(self) -> None:
        if not self._beside:
            made = b"/proc/self/fd/%d" % self.file
            if self._old is None:
                # Another process created it meanwhile: replace that file.
                with suppress(FileExistsError):
                    os.link(made, self._name, dst_dir_fd=self._parent)
                    return
            beside = _NAME + secrets.token_hex(8).encode()
            os.link(made, beside, dst_dir_fd=self._parent)
            self._beside = beside
        os.rename(self._beside, self._name, src_dir_fd=self._parent, dst_dir_fd=self._parent)

    def _drop_beside(self) -> None:
        made, self._made = self._made, b""
        self.close()
        self._made = made

    def _reserve(self, size: int) -> None:
        """Allocate disk space, so that an in-place write cannot fail half way with ENOSPC."""
        before = os.fstat(self.file).st_size
        try:
            os.posix_fallocate(self.file, 0, size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV):
                os.ftruncate(self.file, before)
                raise

    def _clear(self, begin: int, end: int) -> None:
        """Zero old content in gaps."""
        assert self._old is not None, "it is in place"
        end = min(end, self._old.st_size)
        while begin < end:
            begin += os.pwrite(self.file, bytes(min(end - begin, _CLEARED_BYTES)), begin)


def _attributes(file: int) -> list[str]:
    try:
        return [name for name in os.listxattr(file) if not name.startswith(_NOT_COPIED)]
    except OSError:
        # A file system without any.
        return []


def _mount_of(file: int) -> str:
    """Return the mount id of a descriptor: a file can be bind-mounted within its own file
    system.
    """
    with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as lines:
        return next((line for line in lines if line.startswith("mnt_id:")), "")
