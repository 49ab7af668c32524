"""Records of sessions and processes, by which the next server adopts them.

Process records are written without fsync: they matter after a killed server, not after a power
loss, which no process survives. They are appended to one file: on a file system that has just
deleted many files, creating one took half a millisecond, where appending takes three microseconds.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast.exec.protocol import OutputStream
from holdfast.exec.storage.stream_file import EndRecord
from holdfast.world import Disk, disk_failure, replace_file
from holdfast.world.failures import StoreTooNew

_REWRITE_BYTES = 2**20


class AppendOnlyRecords:
    """Append-only file of lines by key.

    Nothing is fsynced. A line that a kill or a full disk cut off does not damage others.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, bytes] = {}
        self._bytes_max = _REWRITE_BYTES

    def read(self) -> list[bytes]:
        """Return every line since the last sweep."""
        with suppress(FileNotFoundError):
            return [line for line in self._path.read_bytes().split(b"\n") if line]
        return []

    def add(self, key: str, line: bytes) -> None:
        """Append a line for a key; raises `OSError` if it does not fit whole."""
        size = self._append(b"\n" + line)
        before = self._lines.get(key)
        self._lines[key] = line if before is None else before + b"\n" + line
        if size > self._bytes_max:
            self.sweep(self._lines)

    def drop(self, key: str, line: bytes) -> None:
        """Append a last line for a key and drop it at the next sweep; disk errors are ignored."""
        if self._lines.pop(key, None) is not None:
            with suppress(OSError):
                self._append(b"\n" + line)

    def sweep(self, lines: dict[str, bytes]) -> None:
        """Rewrite the file with only these lines; a disk error is retried at a later sweep."""
        self._lines = dict(lines)
        data = b"".join(b"\n" + line for line in self._lines.values())
        self._bytes_max = max(_REWRITE_BYTES, 2 * len(data))
        beside = self._path.with_suffix(".new")
        try:
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write(file, data)
            finally:
                os.close(file)
            os.replace(beside, self._path)
        except OSError:
            self._bytes_max += len(data) + _REWRITE_BYTES
            with suppress(OSError):
                beside.unlink()

    def _append(self, data: bytes) -> int:
        """Append bytes; returns the new file size."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            _write(file, data)
            return os.fstat(file).st_size
        finally:
            os.close(file)


def _write(file: int, data: bytes) -> None:
    if os.write(file, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


_Record = TypeVar("_Record", bound=msgspec.Struct)
# The latter only of what a server of before would misread.
_VERSION, _VERSION_WITH_RINGS = 3, 4
# Up to this version a process had a directory for as long as it was known;.
_HAS_DIRECTORY = 2
# version 1 kept each in a file of its own there, beside its output
_APART = "*/meta.json"


class _Versioned(msgspec.Struct, frozen=True):
    """Version member of every record."""

    version: int = 0


class SessionRecord(msgspec.Struct, frozen=True):
    """A session and its place. Its owner is not recorded: after a restart there is none."""

    id: str
    place: str
    version: int = _VERSION
    label: str = ""  # by which an operator can end it


class ProcessRecord(msgspec.Struct, frozen=True):
    """A process: its session, id and command."""

    key: str
    session: str
    process: str
    argv: tuple[str, ...]
    tty: bool
    started_at_ms: int
    version: int = _VERSION
    sandbox: str = ""  # how well it is shut in, if it is
    status: int | None = None  # how it ended, if it did without a word
    is_closed: bool = False
    is_kept: bool = False  # until it ends, whatever becomes of its client


class ProcessNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """A later event of a process: it ended without output, was forgotten, or has rings."""

    key: str
    version: int
    status: int | None = None
    is_closed: bool = False
    is_forgotten: bool = False


class StateRecords:
    """The state directory of a server."""

    def __init__(self, state: Path, disk: Disk) -> None:
        self.state = state
        self._sessions, self._processes = state / "sessions", state / "processes"
        self._roll = AppendOnlyRecords(state / "processes.jsonl")
        self._disk = disk

    def prepare(self) -> None:
        """Create missing directories with mode 0700."""
        for directory in (self._sessions, self._processes):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise disk_failure(error, path=str(directory)) from error

    def directory(self, key: str) -> Path:
        """Return the directory of a process."""
        return self._processes / key

    def keep_session(self, record: SessionRecord) -> None:
        """Record a session durably (fsync)."""
        replace_file(self._disk, self._sessions / record.id, [msgspec.json.encode(record)])

    def forget_session(self, session: str) -> None:
        """Remove a session record; if the disk refuses, the next server retries."""
        with suppress(OSError):
            (self._sessions / session).unlink()

    def keep_process(self, record: ProcessRecord) -> Path:
        """Record a new process; its directory is created on demand."""
        self._roll.add(record.key, msgspec.json.encode(record))
        return self.directory(record.key)

    def end_of(self, record: ProcessRecord) -> EndRecord:
        """Return the end record of a process without output."""

        def note(status: int, is_closed: bool) -> None:
            noted = ProcessNote(record.key, _VERSION, status, is_closed)
            self._roll.add(record.key, msgspec.json.encode(noted))

        def note_rings() -> None:
            noted = ProcessNote(record.key, _VERSION_WITH_RINGS)
            self._roll.add(record.key, msgspec.json.encode(noted))

        return EndRecord(note, record.status, record.is_closed, note_rings)

    @contextmanager
    def naming(self, key: str) -> Generator[None]:
        """Convert OSError for one process to a disk failure."""
        try:
            yield
        except OSError as error:
            raise disk_failure(error, path=str(self.directory(key))) from error

    def forget_process(self, key: str) -> Path:
        """Record that a process is forgotten; the caller removes the returned directory."""
        gone = ProcessNote(key, _VERSION, is_forgotten=True)
        self._roll.drop(key, msgspec.json.encode(gone))
        return self.directory(key)

    def sessions(self) -> Iterator[SessionRecord]:
        """Return every recorded session; unreadable records are skipped."""
        for path in sorted(self._sessions.iterdir()):
            with suppress(OSError):
                record = _read(path.read_bytes(), SessionRecord, path)
                if record is not None:
                    yield record

    def processes(self) -> Iterator[ProcessRecord]:
        """Return every recorded process, oldest first."""
        known: dict[str, ProcessRecord] = {}
        for line in (*self._read_apart(), *self._roll.read()):
            record = _read(line, ProcessRecord, self._processes)
            if record is not None:
                known[record.key] = record
            elif (note := _read(line, ProcessNote, self._processes)) and note.key in known:
                _take(known, note)
        found = [each for each in known.values() if self._is_kept(each)]
        yield from sorted(found, key=lambda record: record.started_at_ms)

    def sweep(self, known: Iterable[ProcessRecord]) -> None:
        """Remove files of unknown processes."""
        lines = {record.key: msgspec.json.encode(record) for record in known}
        for path in self._processes.iterdir():
            if path.name not in lines:
                remove_files(self.forget_process(path.name))
        self._roll.sweep(lines)

    def _is_kept(self, record: ProcessRecord) -> bool:
        return record.version > _HAS_DIRECTORY or self.directory(record.key).exists()

    def _read_apart(self) -> Iterator[bytes]:
        """Read records of a version 1 server, whose processes may still run."""
        for path in self._processes.glob(_APART):
            with suppress(OSError):
                yield path.read_bytes()


def make_files(directory: Path, record: ProcessRecord) -> None:
    """Create the files that the first output of a process needs; disk errors are ignored."""
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        for name in ("index", OutputStream.PTY if record.tty else OutputStream.STDOUT):
            os.close(os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def remove_files(directory: Path) -> None:
    """Remove all files of a process; may take long."""
    shutil.rmtree(directory, ignore_errors=True)


def _take(known: dict[str, ProcessRecord], note: ProcessNote) -> None:
    """Apply a note to the known records."""
    if note.is_forgotten:
        del known[note.key]
    else:
        before = known[note.key]
        known[note.key] = replace(
            before,
            version=max(before.version, note.version),
            status=before.status if note.status is None else note.status,
            is_closed=before.is_closed or note.is_closed,
        )


def _read(raw: bytes, kind: type[_Record], path: Path) -> _Record | None:
    """Decode a record; None if invalid. Raises for a record of a newer server."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(raw, type=_Versioned).version
        if found > _VERSION_WITH_RINGS:
            schema, newest = "exec-server records", _VERSION_WITH_RINGS
            raise StoreTooNew(path=str(path), schema=schema, found=found, newest=newest)
        return msgspec.json.decode(raw, type=kind)
    return None
