"""What one pass of redaction says about a piece of a longer text."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

CONTEXT = 128  # characters of what was already passed on that a pass may look back at
UNSURE = 2  # characters at the end of a piece that may yet turn out to belong to a secret
CLOSING_LONGEST = 200  # characters that the closing mark of a secret may take


def placeholder(label: str) -> str:
    """What stands where a secret of this family stood."""
    return f"[redacted:{label}]"


PLACEHOLDER = re.compile(r"\[redacted:[a-z\-]{1,32}\]")
PLACEHOLDER_BEGUN = re.compile(r"\[[a-z:\-]{0,42}\Z")
_PLACEHOLDER_LONGEST = 43


def inside_placeholder(text: str, at: int) -> bool:
    """Whether what stands here is the name of a family, not text."""
    opening = text.rfind("[", max(0, at - _PLACEHOLDER_LONGEST), at + 1)
    match = PLACEHOLDER.match(text, opening) if opening >= 0 else None
    return match is not None and match.end() > at


@dataclass(frozen=True, slots=True)
class SecretContinuation:
    """How a secret goes on that is too long to be held: all of `body`, then `close` if there."""

    body: re.Pattern[str]
    close: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class RedactionScan:
    """The text up to `keep`, redacted; what follows is undecided, or the `rest` of a secret."""

    out: str
    keep: int
    rest: SecretContinuation | None = None


# A pass reads `text` from `start` on; what precedes is context. When `final`, nothing follows.
Pass = Callable[[str, int, bool], RedactionScan]


class Spans:
    """Collects the output of a pass: unchanged text and placeholders for secrets."""

    __slots__ = ("_pieces", "_text", "at")

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._pieces: list[str] = []
        self.at = start

    def replace(self, start: int, end: int, label: str) -> None:
        """Hide `start` to `end`; both lie after all that was hidden before."""
        self._pieces += (self._text[self.at : start], placeholder(label))
        self.at = end

    def until(self, keep: int, rest: SecretContinuation | None = None) -> RedactionScan:
        """End the pass at `keep`."""
        keep = max(keep, self.at)
        return RedactionScan("".join(self._pieces) + self._text[self.at : keep], keep, rest)


# Let text go through passes that hide something, whole or as it comes.


class Passes:
    """Text goes through passes, each on what the one before left."""

    def __init__(self, *passes: Pass) -> None:
        self._passes = passes

    def text(self, text: str) -> str:
        """The text without its secrets."""
        for scan in self._passes:
            text = scan(text, 0, True).out
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes without the secrets in them, whatever their encoding."""
        return self.text(data.decode("latin-1")).encode("latin-1")

    def stream(self) -> StreamRedactor:
        """A redactor for one text that comes in chunks."""
        return StreamRedactor(self._passes)


class StreamRedactor:
    """Redacts a text that comes in chunks as if it came whole, holding back as little as it can.

    What comes out, all together, is what `Passes.text` makes of the whole. Held back is the
    last word and what may become a secret, never more than a few kilobytes.
    """

    def __init__(self, passes: tuple[Pass, ...]) -> None:
        self._stages = tuple(_Stage(scan) for scan in passes)

    def feed(self, chunk: str) -> str:
        """Take a chunk; return what can be passed on now."""
        for stage in self._stages:
            chunk = stage.feed(chunk, final=False)
        return chunk

    def flush(self) -> str:
        """End the text; return what was held back."""
        chunk = ""
        for stage in self._stages:
            chunk = stage.feed(chunk, final=True)
        return chunk

    @property
    def held(self) -> int:
        """How many characters are held back; bounded, whatever comes."""
        return sum(len(stage.held) for stage in self._stages)

    def feed_data(self, chunk: bytes) -> bytes:
        """As `feed`, for bytes."""
        return self.feed(chunk.decode("latin-1")).encode("latin-1")

    def flush_data(self) -> bytes:
        """As `flush`, for bytes."""
        return self.flush().encode("latin-1")


class _Stage:
    """One pass over a text that comes in chunks."""

    def __init__(self, scan: Pass) -> None:
        self._scan = scan
        self._context = ""
        self.held = ""
        self._rest: SecretContinuation | None = None

    def feed(self, chunk: str, *, final: bool) -> str:
        self.held += chunk
        if self._rest is not None and not self._swallow(self._rest, final=final):
            return ""
        text = self._context + self.held
        scan = self._scan(text, len(self._context), final)
        self._context = text[max(0, scan.keep - CONTEXT) : scan.keep]
        self.held = text[scan.keep :]
        self._rest = scan.rest
        return scan.out

    def _swallow(self, rest: SecretContinuation, *, final: bool) -> bool:
        """Drop the rest of a secret that was hidden already; say whether it has ended."""
        body = rest.body.match(self.held)
        end = body.end() if body else 0
        needed = CLOSING_LONGEST if rest.close else UNSURE
        ended = final or len(self.held) - end >= needed
        if ended and rest.close is not None:
            close = rest.close.match(self.held, end)
            end = close.end() if close else end
        self._context = (self._context + self.held[:end])[-CONTEXT:]
        self.held = self.held[end:]
        self._rest = None if ended else rest
        return ended
