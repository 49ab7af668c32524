"""Cut a stream of bytes into messages, one to a line, without ever holding too much."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

import msgspec

from holdfast.rpc.failures import MessageTooLarge

MESSAGE_BYTES_MAX = 100 * 2**20

_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Lines:
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
