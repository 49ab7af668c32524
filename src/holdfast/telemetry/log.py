"""Records as log lines: JSON for machines, or words for people."""

from __future__ import annotations

import select
from enum import StrEnum
from typing import Protocol

import msgspec
import structlog

from holdfast.telemetry.model import Level, TelemetryRecord

_PIECE = 4096  # bytes that a pipe which says it is ready takes without blocking


class LogStream(Protocol):
    """Where lines go: a file, a terminal, a pipe."""

    def write(self, text: str, /) -> object:
        """Take some text."""
        ...

    def flush(self) -> object:
        """Pass on what was taken."""
        ...

    def fileno(self) -> int:
        """The descriptor behind it; OSError when there is none."""
        ...


class LogStyle(StrEnum):
    """How a line looks."""

    JSON = "json"
    HUMAN = "human"


class LogSink:
    """Writes one line per record, and drops lines rather than wait for a reader.

    When the reader is back, a line says how many were lost.
    """

    name = "log"

    def __init__(
        self, stream: LogStream, *, level: Level = Level.INFO, style: LogStyle = LogStyle.JSON
    ) -> None:
        self.level = level
        self.lost = 0
        self._is_torn = False  # the last line was written only in part
        self._stream = stream
        self._descriptor = _descriptor(stream)
        render = (
            structlog.processors.JSONRenderer(serializer=_encode)
            if style is LogStyle.JSON
            else structlog.dev.ConsoleRenderer(colors=False)
        )
        self._logger = structlog.wrap_logger(
            self, processors=[render], wrapper_class=structlog.BoundLogger
        )

    def take(self, record: TelemetryRecord) -> None:
        """Write one line."""
        if self.lost and self._is_ready():
            lost, self.lost = self.lost, 0
            self._logger.msg("log.lines_lost", count=lost)
        line = record.line()
        self._logger.msg(line.pop("event"), **line)

    def msg(self, text: str) -> None:
        """Take a rendered line from structlog."""
        text = ("\n" if self._is_torn else "") + text
        for start in range(0, len(text) + 1, _PIECE // 4):
            piece = text[start : start + _PIECE // 4]
            last = start + _PIECE // 4 > len(text)
            if not self._is_ready():
                self.lost += 1
                return
            self._stream.write(piece + "\n" if last else piece)
            self._stream.flush()
            self._is_torn = not last

    def close(self) -> None:
        """Leave the stream to its owner."""

    def _is_ready(self) -> bool:
        """Whether a write would not wait; only a descriptor can tell."""
        if self._descriptor is None or not hasattr(select, "poll"):
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(0))


def _descriptor(stream: LogStream) -> int | None:
    try:
        return stream.fileno()
    except OSError:
        return None


def _encode(line: dict[str, object], **_: object) -> str:
    return msgspec.json.encode(line, enc_hook=str).decode()
