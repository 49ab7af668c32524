"""Keep the end of a text that nobody parses, for whoever must find out what went wrong."""

from __future__ import annotations

TAIL_BYTES = 64 * 2**10
PARTIAL_BYTES = 1024


class Tail:
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
