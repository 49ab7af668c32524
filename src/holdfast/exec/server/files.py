"""File methods: whole files, directories, metadata, trees."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field

import pybase64
from msgspec import UNSET

from holdfast.exec.failures import RequestUnfit
from holdfast.exec.file_uri import path_of, uri_of
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.error_replies import file_failure
from holdfast.exec.server.file_replacement import Replacement
from holdfast.exec.server.model import (
    CopyParams,
    CreateDirectoryParams,
    DirectoryEntry,
    DirectoryResult,
    FileData,
    Metadata,
    PathParams,
    PathResult,
    ReadFileParams,
    RemoveParams,
    WalkEntry,
    WalkError,
    WalkOptions,
    WalkParams,
    WalkResult,
    WriteFileParams,
    WriteFileResult,
)

FILE_BYTES_MAX = 512 * 2**20
_ENTRIES_MAX = 50_000
_READ_BYTES = 2**16


class FileOperations:
    """File operations in one place; methods block, and raise only failures."""

    def __init__(self, place: PlaceFiles) -> None:
        self._place = place

    def read_file(self, asked: ReadFileParams) -> FileData:
        """Return the content of a regular file."""
        path = asked_path(asked)
        with naming(path), self._regular(path, follow=asked.follow_symlinks) as file:
            return FileData(encoded(_read_all(file)))

    def write_file(self, asked: WriteFileParams) -> WriteFileResult:
        """Replace or create a file atomically; on failure nothing has changed.

        `inPlace` reports that the file was overwritten, because it could not be replaced.
        """
        path = asked_path(asked)
        try:
            data = pybase64.b64decode(asked.data_base64, validate=True)
        except ValueError as error:
            reason = f"fs/writeFile requires valid base64 dataBase64: {error}"
            raise RequestUnfit(reason=reason) from error
        with naming(path), closing(Replacement(self._place, path)) as new:
            new.write(data, at=0)
            new.commit()
        return WriteFileResult(in_place=True if new.is_in_place else UNSET)

    def create_directory(self, asked: CreateDirectoryParams) -> dict[str, object]:
        """Create a directory, with its parents if requested."""
        path = asked_path(asked)
        with naming(path):
            if asked.recursive:
                make_directories(self._place, path)
            else:
                self._place.make_directory(path)
        return {}

    def metadata(self, asked: PathParams) -> Metadata:
        """Return metadata of a path; error code -32004 if it is missing."""
        path = asked_path(asked)
        with naming(path):
            itself = self._place.look(path, follow=False)
            found = self._place.look(path)
        return Metadata(
            is_directory=stat.S_ISDIR(found.st_mode),
            is_file=stat.S_ISREG(found.st_mode),
            is_symlink=stat.S_ISLNK(itself.st_mode),
            size=found.st_size,
            created_at_ms=0,
            modified_at_ms=max(0, found.st_mtime_ns // 1_000_000),
        )

    def canonicalize(self, asked: PathParams) -> PathResult:
        """Return the path with symlinks resolved."""
        path = asked_path(asked)
        with naming(path):
            return PathResult(uri_of(self._place.resolve(path)))

    def read_directory(self, asked: PathParams) -> DirectoryResult:
        """Return the entries of a directory; symlinks are followed."""
        path = asked_path(asked)
        with naming(path):
            names = self._place.names(path)
        if len(names) > _ENTRIES_MAX:
            reason = f"directory exceeds the limit of {_ENTRIES_MAX} entries"
            raise RequestUnfit(reason=reason)
        entries: list[DirectoryEntry] = []
        for name in names:
            # It was removed just now, or leads nowhere.
            with suppress(OSError):
                mode = self._place.look(path + b"/" + name).st_mode
                shown = name.decode("utf-8", "replace")
                entries.append(DirectoryEntry(shown, stat.S_ISDIR(mode), stat.S_ISREG(mode)))
        return DirectoryResult(tuple(entries))

    @contextmanager
    def _regular(self, path: bytes, *, follow: bool) -> Generator[int]:
        file = open_regular(self._place, path, follow=follow)
        try:
            yield file
        finally:
            os.close(file)


def asked_path(asked: PathParams) -> bytes:
    """Return the path of a request."""
    return path_of(asked.path)


def open_regular(place: PlaceFiles, path: bytes, *, follow: bool = True) -> int:
    """Open a regular file for reading; refuses other files without blocking on them."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
    file = place.open(path, flags) if follow else place.open_without_links(path, flags)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise RequestUnfit(reason=f"path `{path.decode('utf-8', 'backslashreplace')}` is not a file")


def make_directories(place: PlaceFiles, path: bytes) -> None:
    """Create a directory and its missing parents."""
    missing: list[bytes] = []
    while True:
        try:
            _make_directory(place, path)
            break
        except FileNotFoundError:
            missing.append(path)
            path = os.path.dirname(path)
    for each in reversed(missing):
        _make_directory(place, each)


@contextmanager
def naming(path: bytes) -> Generator[None]:
    """Convert OSError to the failure of a file."""
    try:
        yield
    except OSError as error:
        raise file_failure(error, path) from error


def encoded(data: bytes) -> str:
    """Encode as base64."""
    return pybase64.b64encode_as_string(data)


def _make_directory(place: PlaceFiles, path: bytes) -> None:
    """Create a directory; one that another process creates at the same time is fine."""
    try:
        place.make_directory(path)
    except FileExistsError:
        if not stat.S_ISDIR(place.look(path).st_mode):
            raise


def _read_all(file: int) -> bytes:
    """Read to EOF: files in /proc return a page at a time."""
    pieces: list[bytes] = []
    size, at_once = 0, os.fstat(file).st_size + 1
    while size <= FILE_BYTES_MAX and (piece := os.read(file, min(at_once, FILE_BYTES_MAX + 1))):
        pieces.append(piece)
        size, at_once = size + len(piece), max(at_once - len(piece), _READ_BYTES)
    if size > FILE_BYTES_MAX:
        raise RequestUnfit(reason=f"file exceeds the limit of {FILE_BYTES_MAX} bytes")
    return b"".join(pieces)


_DEPTH_MAX, _DIRECTORIES_MAX, _TREE_ENTRIES_MAX = 64, 10_000, 50_000
_ANSWER_BYTES_MAX = 4 * 2**20
_COPY_BYTES = 2**20


class TreeOperations:
    """Tree operations in one place; methods block, and raise only failures."""

    def __init__(self, place: PlaceFiles) -> None:
        self._place = place

    def walk(self, asked: WalkParams) -> WalkResult:
        """Return all files and directories below a directory, breadth first, within limits."""
        path, options = asked_path(asked), asked.options
        if (
            options.max_depth > _DEPTH_MAX
            or options.max_directories > _DIRECTORIES_MAX
            or options.max_entries > _TREE_ENTRIES_MAX
        ):
            limits = (
                f"depth={_DEPTH_MAX}, directories={_DIRECTORIES_MAX}, entries={_TREE_ENTRIES_MAX}"
            )
            raise RequestUnfit(reason=f"filesystem walk limits exceed maximums: {limits}")
        with naming(path):
            self._place.names(path)
        walk = _Walk(self._place, options)
        walk.run(path)
        return WalkResult(tuple(walk.entries), tuple(walk.errors), walk.truncated)

    def copy(self, asked: CopyParams) -> dict[str, object]:
        """Copy a file, a symlink, or if requested a tree."""
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
        """Remove a path, if requested with everything below it."""
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
        """Refuse a copy into its own source, which would never end."""
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
    """State of one walk."""

    place: PlaceFiles
    options: WalkOptions
    entries: list[WalkEntry] = field(default_factory=list[WalkEntry])
    errors: list[WalkError] = field(default_factory=list[WalkError])
    truncated: bool = False
    _size: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def run(self, path: bytes) -> None:
        """Walk breadth first, each directory sorted, until a limit is reached."""
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
        """Add the entries of one directory; returns the directories to descend into."""
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
        """Return the kind of an entry; None for entries that are skipped, such as symlinks."""
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
