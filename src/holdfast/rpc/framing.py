"""Newline-delimited framing of JSON messages, and the failure that the end of a stream means."""

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
    """Decodes a byte stream into messages, one per line, however the bytes are split into reads.

    Drops empty lines and a CR before the line end. Buffers at most one unfinished line, and of that
    no more than the limit and one read. Time is linear in the bytes: an unfinished line grows in
    place and is returned without a copy.
    """

    def __init__(self, *, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._line = BytesIO()
        self._line_bytes = 0
        self.failure: MessageTooLarge | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take the bytes of one read; returns the messages that they complete.

        Once a line exceeds the limit, finished or not, `failure` is set and later calls return
        nothing.
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
        """Take the end of the stream; returns a last message without its line end, or the partial
        bytes.

        Only a JSON object counts as complete: `12` may be the beginning of `123`.
        """
        line = self._take(b"").removesuffix(b"\r")
        try:
            _object.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [], line
        return [line], b""

    def _take(self, end: bytes) -> bytes:
        """End the unfinished line. `getvalue` of a buffer without other references does not
        copy.
        """
        self._line.write(end)
        line, self._line, self._line_bytes = self._line.getvalue(), BytesIO(), 0
        return line

    def _within_limit(self, lines: list[bytes], rest: bytes) -> list[bytes]:
        """Return the lines before the first that exceeds the limit, and set the failure if one
        does.
        """
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
    """Encode messages for the wire, one line each."""
    data = b"\n".join((*messages, b""))
    assert data.count(b"\n") == len(messages), "a message is one line"
    return data


TAIL_BYTES = 64 * 2**10
PARTIAL_BYTES = 1024


class TailBuffer:
    """Keeps the last bytes of a stream of any length in bounded memory."""

    def __init__(self, *, bytes_max: int = TAIL_BYTES) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._fed_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the bytes of one read."""
        self._fed_bytes += len(data)
        self._kept += data[-self._bytes_max :]
        # Trimming only at twice the limit moves each byte at most once.
        # So that each byte is moved only once.
        if len(self._kept) > 2 * self._bytes_max:
            del self._kept[: -self._bytes_max]

    def text(self) -> str:
        """Return the buffered end as text, from the start of a line if the beginning was
        dropped.
        """
        kept = bytes(self._kept[-self._bytes_max :])
        line_start = kept.find(b"\n") + 1
        if self._fed_bytes > len(kept) and line_start < len(kept):
            kept = kept[line_start:]
        return kept.decode(errors="backslashreplace")


def excerpt(data: bytes) -> str:
    """Return the beginning of a broken message as readable text, with the number of omitted
    bytes.
    """
    text = data[:PARTIAL_BYTES].decode(errors="backslashreplace")
    left_out = len(data) - PARTIAL_BYTES
    return f"{text}… and {left_out} bytes more" if left_out > 0 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEvidence:
    """Known facts about a stream that stopped.

    `at_end`: EOF was read. `error`: why a read or write failed. `status`: exit status of the
    process at the other end, negative for the signal that killed it, None while it lives or if
    there is none. `waited`: the wait for further evidence timed out.
    """

    at_end: bool = False
    error: str = ""
    status: int | None = None
    waited: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndContext:
    """Diagnostics for the failure that ends a connection: stderr tail and partial message."""

    stderr: str = ""
    partial: str = ""


def child_failure(evidence: EndEvidence, remains: EndContext) -> Failure | None:
    """Return the failure that a child process ended the connection with; None while undecided.

    EOF on its output arrives before its exit status, and its death may leave the pipe open: then a
    descendant holds the descriptor, whose messages are not from the process that we spoke with.
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
    """Return the failure with which the peer of a socket ended the connection; None while
    undecided.
    """
    if evidence.at_end and not evidence.error and not remains.partial:
        return ConnectionClosed(reason="the other side closed it")
    if evidence.at_end or evidence.waited:
        reason = evidence.error or "it broke off inside a message"
        return ConnectionLost(reason=reason, partial=remains.partial)
    return None


def describe_exit(status: int) -> str:
    """Describe an exit status for people: the status, or the name of the signal."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
