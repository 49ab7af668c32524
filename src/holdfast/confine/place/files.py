"""Files by absolute path, as seen from the root of a place or of the machine itself.

Every path is resolved from the descriptor of a root. In a place links lead where they lead for
those inside, however absolute they are; on the machine they mean what they mean to everyone.

Files below a root that a gate stands before: each use of a path is allowed, or refused.

A name says nothing about where it leads, and may lead elsewhere a moment later. So what is there
is opened first, such that nothing can happen by it; the kernel is asked where that is; and what was
opened then, and nothing else, is used.
"""

from __future__ import annotations

import os
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Generator
from contextlib import AbstractContextManager, contextmanager
from errno import EISDIR, ELOOP
from typing import Self

from holdfast.world import open_in_root

Opener = Callable[[int, bytes, int, int], int]
"""Opens a path below a directory: `open_in_root`, or as the system itself does."""

_LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_MAKES = os.O_CREAT | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY


def _open_plainly(root: int, path: bytes, flags: int, mode: int) -> int:
    return os.open(path, flags, mode, dir_fd=root)


class PlaceFileAccess(ABC):
    """What can be done to files wherever they, and the directories they are in, can be opened."""

    @abstractmethod
    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""

    def look(self, path: bytes, *, follow: bool = True) -> os.stat_result:
        """Say what is there: on request the link itself."""
        if not follow:
            with self._parent(path, writes=False) as (parent, name):
                return os.stat(name, dir_fd=parent, follow_symlinks=False)
        found = self.open(path, _LOOK)
        try:
            return os.fstat(found)
        finally:
            os.close(found)

    def names(self, path: bytes) -> list[bytes]:
        """The names in a directory, sorted."""
        directory = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            return sorted(os.fsencode(name) for name in os.listdir(directory))
        finally:
            os.close(directory)

    def directories(self, path: bytes, *, but: Container[bytes] = ()) -> list[bytes]:
        """The names of those in a directory that are directories and not empty, sorted."""
        top = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(top) as entries:
                inside = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            names = sorted(name for each in inside if (name := os.fsencode(each)) not in but)
            return [name for name in names if _has_entries(name, top)]
        finally:
            os.close(top)

    def make_directory(self, path: bytes) -> None:
        """Make one new directory."""
        with self._parent(path, writes=True) as (parent, name):
            os.mkdir(name, dir_fd=parent)

    def remove(self, path: bytes, *, is_directory: bool) -> None:
        """Remove a file or link, or an empty directory."""
        with self._parent(path, writes=True) as (parent, name):
            if is_directory:
                os.rmdir(name, dir_fd=parent)
            else:
                os.unlink(name, dir_fd=parent)

    def remove_tree(self, path: bytes) -> None:
        """Remove a directory with all below it; what becomes a link meanwhile is not followed."""
        with self._parent(path, writes=True) as (parent, name):
            entered = [_enter(parent, name)]
            try:
                while entered:
                    above, name, here, names = entered[-1]
                    if not names:
                        os.close(entered.pop()[2])
                        os.rmdir(name, dir_fd=above)
                        continue
                    each = names.pop()
                    self._let_change(here, each)
                    if stat.S_ISDIR(os.stat(each, dir_fd=here, follow_symlinks=False).st_mode):
                        entered.append(_enter(here, each))
                    else:
                        os.unlink(each, dir_fd=here)
            finally:
                for _, _, here, _ in entered:
                    os.close(here)

    def read_link(self, path: bytes) -> bytes:
        """The target of a link, as it is written."""
        with self._parent(path, writes=False) as (parent, name):
            return os.readlink(name, dir_fd=parent)

    def make_link(self, path: bytes, *, target: bytes) -> None:
        """Make a link."""
        with self._parent(path, writes=True) as (parent, name):
            os.symlink(target, name, dir_fd=parent)

    def parent(self, path: bytes) -> AbstractContextManager[tuple[int, bytes]]:
        """The directory that something is in, to be changed there, and its name."""
        return self._parent(path, writes=True)

    def let_change(self, parent: int, name: bytes) -> None:
        """Raise if something of this name in a directory may not be made or changed."""
        self._let_change(parent, name)

    @abstractmethod
    def _parent(self, path: bytes, *, writes: bool) -> AbstractContextManager[tuple[int, bytes]]:
        """The directory that something is in, and its name there, to be looked at or changed."""

    @abstractmethod
    def _let_change(self, parent: int, name: bytes) -> None:
        """Raise if what has this name in a directory may not be changed."""


class MergedRootFiles(PlaceFileAccess):
    """The files below a root; raises `OSError` as the system does."""

    def __init__(self, root: int, opener: Opener = open_in_root) -> None:
        """Take over a descriptor of the root; `close` gives it back."""
        self._root, self._opener = root, opener

    @classmethod
    def on_machine(cls) -> Self:
        """The files of the machine itself."""
        return cls(os.open("/", os.O_RDONLY | os.O_DIRECTORY), _open_plainly)

    def close(self) -> None:
        """Give the root back; nothing can be reached from it any more."""
        os.close(self._root)

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""
        makes = mode if flags & _MAKES else 0
        return self._opener(self._root, _below(path), flags | os.O_CLOEXEC, makes)

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open an absolute path if no part of it is a link; else raise ELOOP."""
        directory = os.dup(self._root)
        *parents, name = _below(path).split(b"/")
        try:
            for parent in parents:
                step = os.open(parent, _LOOK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
                os.close(directory)
                directory = step
                if stat.S_ISLNK(os.fstat(directory).st_mode):
                    raise OSError(ELOOP, os.strerror(ELOOP))
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        finally:
            os.close(directory)

    def resolve(self, path: bytes) -> bytes:
        """The path without links, of something that exists."""
        if sys.platform != "linux":
            return os.path.realpath(path, strict=True)
        found = self.open(path, _LOOK)
        try:
            return os.readlink(b"/proc/self/fd/%d" % found)
        finally:
            os.close(found)

    @contextmanager
    def _parent(self, path: bytes, *, writes: bool) -> Generator[tuple[int, bytes]]:  # noqa: ARG002  # part of the base signature
        """The directory that something is in, and its name there."""
        above, _, name = _below(path).rstrip(b"/").rpartition(b"/")
        parent = self.open(above, _LOOK | os.O_DIRECTORY)
        try:
            yield parent, name
        finally:
            os.close(parent)

    def _let_change(self, parent: int, name: bytes) -> None:
        """Let everyone."""


def _enter(parent: int, name: bytes) -> tuple[int, bytes, int, list[bytes]]:
    """Open a directory without following a link; return its place, type and entries."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    here = os.open(name, flags, dir_fd=parent)
    try:
        return parent, name, here, [os.fsencode(each) for each in os.listdir(here)]
    except OSError:
        os.close(here)
        raise


def _has_entries(name: bytes, parent: int) -> bool:
    """Whether anything is in a directory, as far as we may look."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return False
    try:
        with os.scandir(opened) as entries:
            return any(True for _ in entries)
    finally:
        os.close(opened)


def _below(path: bytes) -> bytes:
    """The path as seen from the root."""
    return path.lstrip(b"/") or b"."


Gate = Callable[[bytes, bool], None]
"""Raises if the path, which has no links, may not be read, or (if True) not be written."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC | os.O_APPEND
_PATH = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)


class NamespaceFiles(PlaceFileAccess):
    """The same files as below a root, as far as the gate lets anyone; it owns nothing."""

    def __init__(self, files: MergedRootFiles, gate: Gate) -> None:
        self._files, self._gate = files, gate

    def open(self, path: bytes, flags: int, *, mode: int = 0o666) -> int:
        """Open an absolute path; links lead where they lead in this place."""
        try:
            found = self._files.open(path, _PATH)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            return self._made(path, flags, mode)
        return self._passed(found, flags)

    def open_without_links(self, path: bytes, flags: int) -> int:
        """Open an absolute path if no part of it is a link; else raise ELOOP."""
        return self._passed(self._files.open_without_links(path, _PATH), flags)

    def resolve(self, path: bytes) -> bytes:
        """The path without links, of something that exists."""
        found = self.open(path, _PATH)
        try:
            return _place_of(found)
        finally:
            os.close(found)

    def _passed(self, found: int, flags: int) -> int:
        """What was found, opened as was asked, if the gate lets it."""
        try:
            self._gate(_place_of(found), bool(flags & _WRITES))
            kept = flags & ~(os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)
            return os.open(b"/proc/self/fd/%d" % found, kept | os.O_CLOEXEC)
        finally:
            os.close(found)

    def _made(self, path: bytes, flags: int, mode: int) -> int:
        with self._parent(path, writes=True) as (parent, name):
            return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=parent)

    @contextmanager
    def _parent(self, path: bytes, *, writes: bool) -> Generator[tuple[int, bytes]]:
        """The directory that something is in, and its name there, if the gate lets it."""
        above, _, name = path.rstrip(b"/").rpartition(b"/")
        parent = self._files.open(above or b"/", _PATH | os.O_DIRECTORY)
        try:
            if name in (b"", b".", b".."):
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
            self._gate(_place_of(parent).rstrip(b"/") + b"/" + name, writes)
            yield parent, name
        finally:
            os.close(parent)

    def _let_change(self, parent: int, name: bytes) -> None:
        self._gate(_place_of(parent).rstrip(b"/") + b"/" + name, True)


def _place_of(found: int) -> bytes:
    return os.readlink(b"/proc/self/fd/%d" % found)
