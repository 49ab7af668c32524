"""Cut a stream of bytes into messages, one to a line, without ever holding too much."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO

import msgspec

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, MessageTooLarge

MESSAGE_BYTES_MAX = 100 * 2**20

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class LineDecoder:
    """The messages of one stream, whole and in order, however its bytes are cut up.

    Empty lines and a CR before the line end are dropped. Holds at most one unfinished line, and of
    that no more than the limit and one read. Costs time in proportion to the bytes: an unfinished
    line grows in place and is handed on uncopied.
    """

    def __init__(self, *, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._line = BytesIO()
        self._line_bytes = 0
        self.failure: MessageTooLarge | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take what one read yielded and return the messages that it completes.

        Once a line is over the limit, finished or not, `failure` says so and no more come out.
        """
        if self.failure is not None:
            return []
        may_exceed = self._line_bytes + len(data) > self._bytes_max
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._line_bytes:
            lines[0] = self._take(lines[0])
        if may_exceed:
            lines = self._within_limit(lines, rest)
        if rest and self.failure is None:
            self._line.write(rest)
            self._line_bytes += len(rest)
        if lines and (b"\r" in data or lines[0].endswith(b"\r")):
            lines = [line.removesuffix(b"\r") for line in lines]
        return lines if all(lines) else [line for line in lines if line]

    def finish(self) -> tuple[list[bytes], bytes]:
        """Take the end of the stream: a last message that lacks only its line end, or a part.

        Only an object counts as whole. `12` may be the beginning of `123`.
        """
        line = self._take(b"").removesuffix(b"\r")
        try:
            _object.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [], line
        return [line], b""

    def _take(self, end: bytes) -> bytes:
        """End the unfinished line; `getvalue` of a buffer nobody else holds does not copy it."""
        self._line.write(end)
        line, self._line, self._line_bytes = self._line.getvalue(), BytesIO(), 0
        return line

    def _within_limit(self, lines: list[bytes], rest: bytes) -> list[bytes]:
        """The lines before the first that is over the limit, which is noted."""
        for number, line in enumerate(lines):
            if len(line) > self._bytes_max:
                return self._exceeded(lines[:number])
        if self._line_bytes + len(rest) > self._bytes_max:
            return self._exceeded(lines)
        return lines

    def _exceeded(self, lines: list[bytes]) -> list[bytes]:
        self.failure = MessageTooLarge(bytes_max=self._bytes_max)
        self._line, self._line_bytes = BytesIO(), 0
        return lines


def join(messages: Sequence[bytes]) -> bytes:
    """Put messages on the wire, one line each."""
    data = b"\n".join((*messages, b""))
    assert data.count(b"\n") == len(messages), "a message is one line"
    return data


# Keep the end of a text that nobody parses, for whoever must find out what went wrong.

TAIL_BYTES = 64 * 2**10
PARTIAL_BYTES = 1024


class TailBuffer:
    """The last bytes of a stream of any length, in bounded memory."""

    def __init__(self, *, bytes_max: int = TAIL_BYTES) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._fed_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take what one read yielded."""
        self._fed_bytes += len(data)
        self._kept += data[-self._bytes_max :]
        if len(self._kept) > 2 * self._bytes_max:  # so that each byte is moved only once
            del self._kept[: -self._bytes_max]

    def text(self) -> str:
        """What was kept, from the start of a line if the beginning is gone."""
        kept = bytes(self._kept[-self._bytes_max :])
        line_start = kept.find(b"\n") + 1
        if self._fed_bytes > len(kept) and line_start < len(kept):
            kept = kept[line_start:]
        return kept.decode(errors="backslashreplace")


def excerpt(data: bytes) -> str:
    """The beginning of a broken message as readable text, saying how much was left out."""
    text = data[:PARTIAL_BYTES].decode(errors="backslashreplace")
    left_out = len(data) - PARTIAL_BYTES
    return f"{text}… and {left_out} bytes more" if left_out > 0 else text


# Decide from what is known how a connection ended, or that it is too early to tell.


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEvidence:
    """What is known about a stream that stopped.

    `at_end` says that nothing more can be read, `error` why reading or writing failed. `status`
    is that of the process at the other end: negative for the signal that killed it, None while
    it lives or if there is none. `waited` says that more time will not tell more.
    """

    at_end: bool = False
    error: str = ""
    status: int | None = None
    waited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndContext:
    """What a connection leaves behind for whoever must explain its end."""

    stderr: str = ""
    partial: str = ""


def child_failure(evidence: EndEvidence, remains: EndContext) -> Failure | None:
    """How a process ended the connection; None while it may yet say more.

    The end of its output comes before its status, and its death may leave its output open: then
    a process of its own holds on to it, whose messages are not those of the one we spoke with.
    """
    if not evidence.waited and (evidence.status is None or not evidence.at_end):
        return None
    match evidence.status:
        case None if evidence.error:
            reason = evidence.error
        case None:
            reason = "it closed its output and lives on"
        case 0:
            return ConnectionClosed(
                reason="exit status 0", stderr=remains.stderr, partial=remains.partial
            )
        case status:
            reason = describe_exit(status)
    return ConnectionLost(
        reason=reason, status=evidence.status, stderr=remains.stderr, partial=remains.partial
    )


def socket_failure(evidence: EndEvidence, remains: EndContext) -> Failure | None:
    """How the other side of a socket ended the connection; None while it may yet say more."""
    if evidence.at_end and not evidence.error and not remains.partial:
        return ConnectionClosed(reason="the other side closed it")
    if evidence.at_end or evidence.waited:
        reason = evidence.error or "it broke off inside a message"
        return ConnectionLost(reason=reason, partial=remains.partial)
    return None


def describe_exit(status: int) -> str:
    """Say how a process ended, as people say it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
