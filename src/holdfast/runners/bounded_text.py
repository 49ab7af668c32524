"""Head and tail of a text of any length, in bounded memory."""

from __future__ import annotations

from typing import Final

HEAD_CHARS: Final = 8 * 1024
TAIL_CHARS: Final = 24 * 1024


class BoundedText:
    """Head and tail of a tool's output."""

    def __init__(self, *, head_chars: int = HEAD_CHARS, tail_chars: int = TAIL_CHARS) -> None:
        self._head_chars, self._tail_chars = head_chars, tail_chars
        self._head = ""
        self._tail: list[str] = []
        self._held = 0  # characters in the tail, up to twice the limit
        self._fed = 0

    def feed(self, text: str) -> None:
        """Append text."""
        self._fed += len(text)
        room = self._head_chars - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail.append(text)
            self._held += len(text)
        # Twice the limit, so that each character is copied only once.
        if self._held > 2 * self._tail_chars:
            kept = "".join(self._tail)[-self._tail_chars :]
            self._tail, self._held = [kept], len(kept)

    @property
    def left_out(self) -> int:
        """Characters that were dropped."""
        return max(0, self._fed - self._head_chars - self._tail_chars)

    @property
    def text(self) -> str:
        """Return the text, or head and tail with a line about the omitted part."""
        tail = "".join(self._tail)
        if not self.left_out:
            return self._head + tail
        return f"{self._head}\n… {self.left_out} characters left out …\n{tail[-self._tail_chars :]}"
