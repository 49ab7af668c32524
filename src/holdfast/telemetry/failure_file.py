"""Failures kept in a file that can be read offline, long after the fact."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.failures import Failure, from_wire
from holdfast.telemetry.model import Level, TelemetryRecord
from holdfast.world import make_private

BYTES_MAX = 4 * 1024 * 1024
OLDER_KEPT = 3
_FILE = "failures.jsonl"


class FailureFileSink:
    """Appends each failure, whole, as one line of JSON, and returns once it is on the disk.

    The file is for its owner alone. When it is full it is set aside, and the oldest such file is
    forgotten. It is opened for each failure, so many processes may share it and none
    minds if someone moves it away.
    """

    name = "failure artefact"
    level = Level.DEBUG

    def __init__(self, directory: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max

    def take(self, record: TelemetryRecord) -> None:
        """Keep a failure; other records are none of its business."""
        if record.failure is None:
            return
        line = msgspec.json.encode(record.failure, enc_hook=str) + b"\n"
        make_private(self._directory)
        with suppress(FileNotFoundError):  # another process makes room at the same time
            self._make_room(len(line))
        path = self._directory / _FILE
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            _append(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            _sync_directory(self._directory)

    def close(self) -> None:
        """Hold nothing between failures."""

    def _make_room(self, size: int) -> None:
        path = self._directory / _FILE
        if not path.exists() or path.stat().st_size + size <= self._bytes_max:
            return
        for number in range(OLDER_KEPT - 1, 0, -1):
            older = path.with_suffix(f".{number}.jsonl")
            if older.exists():
                older.replace(path.with_suffix(f".{number + 1}.jsonl"))
        path.replace(path.with_suffix(".1.jsonl"))
        _sync_directory(self._directory)


def read_failures(directory: Path) -> Iterator[Failure]:
    """All failures that are kept there, oldest first; lines that are damaged are passed over."""
    older = [directory / f"failures.{number}.jsonl" for number in range(OLDER_KEPT, 0, -1)]
    for path in [*older, directory / _FILE]:
        lines: list[bytes] = []
        with suppress(FileNotFoundError):  # or it is being set aside right now
            lines = path.read_bytes().splitlines()
        for line in lines:
            try:
                yield from_wire(msgspec.json.decode(line, type=dict[str, object]))
            except ValueError:  # it may not even be text
                continue


def _append(descriptor: int, line: bytes) -> None:
    """Write a whole line, also after one that a crash cut off."""
    end = os.fstat(descriptor).st_size
    if end and os.pread(descriptor, 1, end - 1) != b"\n":
        line = b"\n" + line
    while line:
        line = line[os.write(descriptor, line) :]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
