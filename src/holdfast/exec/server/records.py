"""What a server writes down about sessions and processes, so that the next one knows them.

Records of processes are written without a sync: they matter to whoever comes after a killed
server, not after a power cut, which no process survives.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from holdfast.exec.server.roll import Roll
from holdfast.world import Disk, disk_failure, replace_file
from holdfast.world.failures import StoreTooNew

_Record = TypeVar("_Record", bound=msgspec.Struct)
_VERSION = 2  # version 1 kept each process in a file of its own, beside its output
_APART = "*/meta.json"


class _Versioned(msgspec.Struct, frozen=True):
    """What every record says first."""

    version: int = 0


class SessionRecord(msgspec.Struct, frozen=True):
    """A session: where it runs. Who has it is not worth writing down: a new server has nobody."""

    id: str
    place: str
    version: int = _VERSION


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


class Records:
    """The directory of a server's state."""

    def __init__(self, state: Path, disk: Disk) -> None:
        self.state = state
        self._sessions, self._processes = state / "sessions", state / "processes"
        self._roll = Roll(state / "processes.jsonl")
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
        """Forget a session; one that is not known is forgotten already."""
        (self._sessions / session).unlink(missing_ok=True)

    def keep_process(self, record: ProcessRecord) -> Path:
        """Make the directory of a new process, and write the process down."""
        directory = self.directory(record.key)
        os.mkdir(directory, 0o700)
        self._roll.add(record.key, msgspec.json.encode(record))
        return directory

    @contextmanager
    def naming(self, key: str) -> Generator[None]:
        """Turn what the disk refuses about one process into the failure that it is."""
        try:
            yield
        except OSError as error:
            raise disk_failure(error, path=str(self.directory(key))) from error

    def forget_process(self, key: str) -> None:
        """Remove all about one process."""
        self._roll.drop(key)
        shutil.rmtree(self.directory(key), ignore_errors=True)

    def sessions(self) -> Iterator[SessionRecord]:
        """Every session that was written down; what cannot be read is passed over."""
        for path in sorted(self._sessions.iterdir()):
            with suppress(OSError):
                record = _read(path.read_bytes(), SessionRecord, path)
                if record is not None:
                    yield record

    def processes(self) -> Iterator[ProcessRecord]:
        """Every process that was written down and is kept, the oldest first."""
        lines = [*self._read_apart(), *self._roll.read()]
        found = [_read(line, ProcessRecord, self._processes) for line in lines]
        known = {each.key: each for each in found if each and self.directory(each.key).exists()}
        yield from sorted(known.values(), key=lambda record: record.started_at_ms)

    def sweep(self, known: Iterable[ProcessRecord]) -> None:
        """Remove all about processes that nobody knows."""
        lines = {record.key: msgspec.json.encode(record) for record in known}
        for path in self._processes.iterdir():
            if path.name not in lines:
                self.forget_process(path.name)
        self._roll.sweep(lines)

    def _read_apart(self) -> Iterator[bytes]:
        """What a server of version 1 wrote down; its processes may still run."""
        for path in self._processes.glob(_APART):
            with suppress(OSError):
                yield path.read_bytes()


def _read(raw: bytes, kind: type[_Record], path: Path) -> _Record | None:
    """Read a record; None if it is none. What a newer server wrote is not ours to misread."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        found = msgspec.json.decode(raw, type=_Versioned).version
        if found > _VERSION:
            schema = "exec-server records"
            raise StoreTooNew(path=str(path), schema=schema, found=found, newest=_VERSION)
        return msgspec.json.decode(raw, type=kind)
    return None
