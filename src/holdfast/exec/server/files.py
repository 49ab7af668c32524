"""The file methods: whole files, directories and what is known about them."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress

import pybase64
from msgspec import UNSET

from holdfast.exec.core.file_errors import file_failure
from holdfast.exec.core.file_uri import path_of, uri_of
from holdfast.exec.failures import RequestUnfit
from holdfast.exec.ports import PlaceFiles
from holdfast.exec.server.model import (
    CreateDirectoryParams,
    DirectoryEntry,
    DirectoryResult,
    FileData,
    Metadata,
    PathParams,
    PathResult,
    ReadFileParams,
    WriteFileParams,
    WriteFileResult,
)
from holdfast.exec.server.replacement import Replacement

FILE_BYTES_MAX = 512 * 2**20
_ENTRIES_MAX = 50_000
_READ_BYTES = 2**16


class Files:
    """The files of one place; every method blocks, and raises only failures."""

    def __init__(self, place: PlaceFiles) -> None:
        self._place = place

    def read_file(self, asked: ReadFileParams) -> FileData:
        """The whole content of a regular file."""
        path = asked_path(asked)
        with naming(path), self._regular(path, follow=asked.follow_symlinks) as file:
            return FileData(encoded(_read_all(file)))

    def write_file(self, asked: WriteFileParams) -> WriteFileResult:
        """Replace the content of a file whole, or make it; where it fails, nothing has changed.

        `inPlace` says that the file was overwritten, because it could not be replaced.
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
        """Make a directory, with those above it that are missing."""
        path = asked_path(asked)
        with naming(path):
            if asked.recursive:
                make_directories(self._place, path)
            else:
                self._place.make_directory(path)
        return {}

    def metadata(self, asked: PathParams) -> Metadata:
        """What is at a path; -32004 if nothing is."""
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
        """The path without links."""
        path = asked_path(asked)
        with naming(path):
            return PathResult(uri_of(self._place.resolve(path)))

    def read_directory(self, asked: PathParams) -> DirectoryResult:
        """The names in a directory, and what they lead to."""
        path = asked_path(asked)
        with naming(path):
            names = self._place.names(path)
        if len(names) > _ENTRIES_MAX:
            reason = f"directory exceeds the limit of {_ENTRIES_MAX} entries"
            raise RequestUnfit(reason=reason)
        entries: list[DirectoryEntry] = []
        for name in names:
            with suppress(OSError):  # it was removed just now, or leads nowhere
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
    """The path that a request names."""
    return path_of(asked.path)


def open_regular(place: PlaceFiles, path: bytes, *, follow: bool = True) -> int:
    """Open a regular file for reading; anything else is refused, and never waited for."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
    file = place.open(path, flags) if follow else place.open_without_links(path, flags)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise RequestUnfit(reason=f"path `{path.decode('utf-8', 'backslashreplace')}` is not a file")


def make_directories(place: PlaceFiles, path: bytes) -> None:
    """Make a directory and those above it, where they are missing."""
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
    """Turn an error of the system into the failure that it is."""
    try:
        yield
    except OSError as error:
        raise file_failure(error, path) from error


def encoded(data: bytes) -> str:
    """Write bytes as base64."""
    return pybase64.b64encode_as_string(data)


def _make_directory(place: PlaceFiles, path: bytes) -> None:
    """Make a directory, whoever else is about to."""
    try:
        place.make_directory(path)
    except FileExistsError:
        if not stat.S_ISDIR(place.look(path).st_mode):
            raise


def _read_all(file: int) -> bytes:
    """All of it, however little one read gives: files of the kernel say a page at a time."""
    pieces: list[bytes] = []
    size, at_once = 0, os.fstat(file).st_size + 1
    while size <= FILE_BYTES_MAX and (piece := os.read(file, min(at_once, FILE_BYTES_MAX + 1))):
        pieces.append(piece)
        size, at_once = size + len(piece), max(at_once - len(piece), _READ_BYTES)
    if size > FILE_BYTES_MAX:
        raise RequestUnfit(reason=f"file exceeds the limit of {FILE_BYTES_MAX} bytes")
    return b"".join(pieces)
