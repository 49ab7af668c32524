"""Keep the beginning and the end of a text of any length, in bounded memory."""

from __future__ import annotations

from typing import Final

HEAD_CHARS: Final = 8 * 1024
TAIL_CHARS: Final = 24 * 1024


class BoundedText:
    """What a tool printed, as far as anybody will read it: the first and the last of it."""

    def __init__(self, *, head_chars: int = HEAD_CHARS, tail_chars: int = TAIL_CHARS) -> None:
        self._head_chars, self._tail_chars = head_chars, tail_chars
        self._head = ""
        self._tail: list[str] = []
        self._held = 0  # in the tail, which may be twice as long as it has to
        self._fed = 0

    def feed(self, text: str) -> None:
        """Take the next piece."""
        self._fed += len(text)
        room = self._head_chars - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail.append(text)
            self._held += len(text)
        if self._held > 2 * self._tail_chars:  # so that each character is moved only once
            kept = "".join(self._tail)[-self._tail_chars :]
            self._tail, self._held = [kept], len(kept)

    @property
    def left_out(self) -> int:
        """How many characters are missing between the beginning and the end."""
        return max(0, self._fed - self._head_chars - self._tail_chars)

    @property
    def text(self) -> str:
        """All of it; or its beginning and its end, with a line that says what is missing."""
        tail = "".join(self._tail)
        if not self.left_out:
            return self._head + tail
        return f"{self._head}\n… {self.left_out} characters left out …\n{tail[-self._tail_chars :]}"
