"""What a server writes down about sessions and processes, so that the next one knows them.

Records of processes are written without a sync: they matter to whoever comes after a killed
server, not after a power cut, which no process survives.

Write many short records down in one file, since a new file for each would cost much more.

A file system that has just deleted many files is slow to make new ones: half a millisecond each
was measured where appending a line takes three microseconds.
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
    """Lines by their keys, on the disk in the order in which they were added.

    Nothing is synced. A line that a kill or a full disk broke off spoils no other one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: dict[str, bytes] = {}
        self._bytes_max = _REWRITE_BYTES

    def read(self) -> list[bytes]:
        """Every line that was ever added and has not been swept away since."""
        with suppress(FileNotFoundError):
            return [line for line in self._path.read_bytes().split(b"\n") if line]
        return []

    def add(self, key: str, line: bytes) -> None:
        """Add a line to those of a key; raises `OSError` if it does not fit whole."""
        size = self._append(b"\n" + line)
        before = self._lines.get(key)
        self._lines[key] = line if before is None else before + b"\n" + line
        if size > self._bytes_max:
            self.sweep(self._lines)

    def drop(self, key: str, line: bytes) -> None:
        """Let the lines of a key go, after a last one that says so.

        All may still be read until the next sweep. A disk that refuses the last is not asked again.
        """
        if self._lines.pop(key, None) is not None:
            with suppress(OSError):
                self._append(b"\n" + line)

    def sweep(self, lines: dict[str, bytes]) -> None:
        """Keep only these; a disk that refuses is asked again when there is more to sweep."""
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
        """Write at the end, and say how long the file is now."""
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
_VERSION, _VERSION_WITH_RINGS = 3, 4  # the latter only of what a server of before would misread
_HAS_DIRECTORY = 2  # up to this version a process had a directory for as long as it was known;
# version 1 kept each in a file of its own there, beside its output
_APART = "*/meta.json"


class _Versioned(msgspec.Struct, frozen=True):
    """What every record says first."""

    version: int = 0


class SessionRecord(msgspec.Struct, frozen=True):
    """A session: where it runs. Who has it is not worth writing down: a new server has nobody."""

    id: str
    place: str
    version: int = _VERSION
    label: str = ""  # by which an operator can end it


class ProcessRecord(msgspec.Struct, frozen=True):
    """A process: which one of which session, and what it was started as."""

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
    """What happened to a process later: it ended without a word, was forgotten, or has rings."""

    key: str
    version: int
    status: int | None = None
    is_closed: bool = False
    is_forgotten: bool = False


class StateRecords:
    """The directory of a server's state."""

    def __init__(self, state: Path, disk: Disk) -> None:
        self.state = state
        self._sessions, self._processes = state / "sessions", state / "processes"
        self._roll = AppendOnlyRecords(state / "processes.jsonl")
        self._disk = disk

    def prepare(self) -> None:
        """Make the directories that are missing, for our own eyes only."""
        for directory in (self._sessions, self._processes):
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            except OSError as error:
                raise disk_failure(error, path=str(directory)) from error

    def directory(self, key: str) -> Path:
        """Where all about one process is kept."""
        return self._processes / key

    def keep_session(self, record: SessionRecord) -> None:
        """Write a session down, durably."""
        replace_file(self._disk, self._sessions / record.id, [msgspec.json.encode(record)])

    def forget_session(self, session: str) -> None:
        """Forget a session; one that the disk does not let go of is left to the next server."""
        with suppress(OSError):
            (self._sessions / session).unlink()

    def keep_process(self, record: ProcessRecord) -> Path:
        """Write a new process down; its directory is made once there is something to put there."""
        self._roll.add(record.key, msgspec.json.encode(record))
        return self.directory(record.key)

    def end_of(self, record: ProcessRecord) -> EndRecord:
        """How a process ended that has said nothing, and where that is written down."""

        def note(status: int, is_closed: bool) -> None:
            noted = ProcessNote(record.key, _VERSION, status, is_closed)
            self._roll.add(record.key, msgspec.json.encode(noted))

        def note_rings() -> None:
            noted = ProcessNote(record.key, _VERSION_WITH_RINGS)
            self._roll.add(record.key, msgspec.json.encode(noted))

        return EndRecord(note, record.status, record.is_closed, note_rings)

    @contextmanager
    def naming(self, key: str) -> Generator[None]:
        """Turn what the disk refuses about one process into the failure that it is."""
        try:
            yield
        except OSError as error:
            raise disk_failure(error, path=str(self.directory(key))) from error

    def forget_process(self, key: str) -> Path:
        """Write down that a process is known no more; its directory is the caller's to remove."""
        gone = ProcessNote(key, _VERSION, is_forgotten=True)
        self._roll.drop(key, msgspec.json.encode(gone))
        return self.directory(key)

    def sessions(self) -> Iterator[SessionRecord]:
        """Every session that was written down; what cannot be read is passed over."""
        for path in sorted(self._sessions.iterdir()):
            with suppress(OSError):
                record = _read(path.read_bytes(), SessionRecord, path)
                if record is not None:
                    yield record

    def processes(self) -> Iterator[ProcessRecord]:
        """Every process that was written down and is kept, the oldest first."""
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
        """Remove all about processes that nobody knows."""
        lines = {record.key: msgspec.json.encode(record) for record in known}
        for path in self._processes.iterdir():
            if path.name not in lines:
                remove_files(self.forget_process(path.name))
        self._roll.sweep(lines)

    def _is_kept(self, record: ProcessRecord) -> bool:
        return record.version > _HAS_DIRECTORY or self.directory(record.key).exists()

    def _read_apart(self) -> Iterator[bytes]:
        """What a server of version 1 wrote down; its processes may still run."""
        for path in self._processes.glob(_APART):
            with suppress(OSError):
                yield path.read_bytes()


def make_files(directory: Path, record: ProcessRecord) -> None:
    """Make the files that a process needs with its first word; a disk may refuse to."""
    with suppress(OSError):
        directory.mkdir(mode=0o700, exist_ok=True)
        for name in ("index", OutputStream.PTY if record.tty else OutputStream.STDOUT):
            os.close(os.open(directory / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def remove_files(directory: Path) -> None:
    """Remove all files of a process, which may take its time."""
    shutil.rmtree(directory, ignore_errors=True)


def _take(known: dict[str, ProcessRecord], note: ProcessNote) -> None:
    """Let a note change what is known about its process."""
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
    """Read a record; None if it is none. What a newer server wrote is not ours to misread."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(raw, type=_Versioned).version
        if found > _VERSION_WITH_RINGS:
            schema, newest = "exec-server records", _VERSION_WITH_RINGS
            raise StoreTooNew(path=str(path), schema=schema, found=found, newest=newest)
        return msgspec.json.decode(raw, type=kind)
    return None
