"""The file methods that go through whole trees: walk, copy, remove."""

from __future__ import annotations

import os
import stat
from collections import deque
from contextlib import closing
from dataclasses import dataclass, field

from holdfast.exec.core.file_uri import path_of, uri_of
from holdfast.exec.failures import RequestUnfit
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.files import (
    asked_path,
    make_directories,
    naming,
    open_regular,
)
from holdfast.exec.server.model import (
    CopyParams,
    RemoveParams,
    WalkEntry,
    WalkError,
    WalkOptions,
    WalkParams,
    WalkResult,
)
from holdfast.exec.server.replacement import Replacement

_DEPTH_MAX, _DIRECTORIES_MAX, _ENTRIES_MAX = 64, 10_000, 50_000
_ANSWER_BYTES_MAX = 4 * 2**20
_COPY_BYTES = 2**20


class Trees:
    """The trees of one place; every method blocks, and raises only failures."""

    def __init__(self, place: PlaceFiles) -> None:
        self._place = place

    def walk(self, asked: WalkParams) -> WalkResult:
        """All files and directories below a directory, level by level, within limits."""
        path, options = asked_path(asked), asked.options
        if (
            options.max_depth > _DEPTH_MAX
            or options.max_directories > _DIRECTORIES_MAX
            or options.max_entries > _ENTRIES_MAX
        ):
            limits = f"depth={_DEPTH_MAX}, directories={_DIRECTORIES_MAX}, entries={_ENTRIES_MAX}"
            raise RequestUnfit(reason=f"filesystem walk limits exceed maximums: {limits}")
        with naming(path):
            self._place.names(path)
        walk = _Walk(self._place, options)
        walk.run(path)
        return WalkResult(tuple(walk.entries), tuple(walk.errors), walk.truncated)

    def copy(self, asked: CopyParams) -> dict[str, object]:
        """Copy a file, a link, or on request a whole tree."""
        source, target = path_of(asked.source_path), path_of(asked.destination_path)
        with naming(source):
            mode = self._place.look(source, follow=False).st_mode
            if not stat.S_ISDIR(mode):
                self._copy_one(source, target, mode)
                return {}
            if not asked.recursive:
                reason = "fs/copy requires recursive: true when sourcePath is a directory"
                raise RequestUnfit(reason=reason)
            self._refuse_into_itself(source, target)
            self._copy_tree(source, target)
        return {}

    def remove(self, asked: RemoveParams) -> dict[str, object]:
        """Remove what is at a path, on request with all below it."""
        path = asked_path(asked)
        with naming(path):
            try:
                mode = self._place.look(path, follow=False).st_mode
            except FileNotFoundError:
                if asked.force:
                    return {}
                raise
            if stat.S_ISDIR(mode) and asked.recursive:
                self._place.remove_tree(path)
            else:
                self._place.remove(path, is_directory=stat.S_ISDIR(mode))
        return {}

    def _refuse_into_itself(self, source: bytes, target: bytes) -> None:
        """A copy inside its own source would never end."""
        parent = os.path.dirname(target)
        try:
            beyond = self._place.resolve(parent) + b"/" + os.path.basename(target)
        except FileNotFoundError:
            beyond = target
        origin = self._place.resolve(source)
        if beyond == origin or beyond.startswith(origin.rstrip(b"/") + b"/"):
            reason = "fs/copy cannot copy a directory to itself or one of its descendants"
            raise RequestUnfit(reason=reason)

    def _copy_tree(self, source: bytes, target: bytes) -> None:
        waiting = [(source, target)]
        while waiting:
            source, target = waiting.pop()
            make_directories(self._place, target)
            for name in self._place.names(source):
                inner, outer = source + b"/" + name, target + b"/" + name
                mode = self._place.look(inner, follow=False).st_mode
                if stat.S_ISDIR(mode):
                    waiting.append((inner, outer))
                else:
                    self._copy_one(inner, outer, mode)

    def _copy_one(self, source: bytes, target: bytes, mode: int) -> None:
        if stat.S_ISLNK(mode):
            self._place.make_link(target, target=self._place.read_link(source))
            return
        reading = open_regular(self._place, source)
        try:
            with closing(Replacement(self._place, target, mode=stat.S_IMODE(mode))) as new:
                at = 0
                while data := os.pread(reading, _COPY_BYTES, at):
                    new.write(data, at=at)
                    at += len(data)
                new.commit()
        finally:
            os.close(reading)


@dataclass
class _Walk:
    """One walk on its way, and what it has found."""

    place: PlaceFiles
    options: WalkOptions
    entries: list[WalkEntry] = field(default_factory=list[WalkEntry])
    errors: list[WalkError] = field(default_factory=list[WalkError])
    truncated: bool = False
    _size: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def run(self, path: bytes) -> None:
        """Go level by level, each directory sorted, until a limit says stop."""
        waiting = deque([(path, 0)])
        directories = 1
        while waiting and not self.truncated:
            directory, depth = waiting.popleft()
            for below in self._read(directory):
                if depth + 1 < self.options.max_depth:
                    if directories >= self.options.max_directories:
                        self.truncated = True
                        return
                    directories += 1
                    waiting.append((below, depth + 1))

    def _read(self, directory: bytes) -> list[bytes]:
        """Take note of all in one directory, and say which of it to go into."""
        found: list[bytes] = []
        try:
            names = self.place.names(directory)
        except OSError as error:
            self.errors.append(WalkError(uri_of(directory), str(error.strerror)))
            return found
        for name in names:
            path = directory.rstrip(b"/") + b"/" + name
            kind = self._kind(path)
            if kind is None or (kind == "directory" and self._is_pruned(name)):
                continue
            if not self._add(WalkEntry(uri_of(path), kind)):
                return found
            if kind == "directory":
                found.append(path)
        return found

    def _is_pruned(self, name: bytes) -> bool:
        return self.options.prune_hidden_directories and name.startswith(b".")

    def _kind(self, path: bytes) -> str | None:
        """What to call it; None for what a walk passes by, such as links."""
        try:
            found = self.place.look(path, follow=False)
            is_link = stat.S_ISLNK(found.st_mode)
            if is_link and self.options.follow_directory_symlinks:
                found = self.place.look(path)
                if not stat.S_ISDIR(found.st_mode) or (found.st_dev, found.st_ino) in self._seen:
                    return None
        except OSError:
            return None
        if stat.S_ISDIR(found.st_mode):
            self._seen.add((found.st_dev, found.st_ino))
            return "directory"
        return "file" if stat.S_ISREG(found.st_mode) else None

    def _add(self, entry: WalkEntry) -> bool:
        self._size += len(entry.path)
        if len(self.entries) >= self.options.max_entries or self._size > _ANSWER_BYTES_MAX:
            self.truncated = True
            return False
        self.entries.append(entry)
        return True
