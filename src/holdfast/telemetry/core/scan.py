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
class Rest:
    """How a secret goes on that is too long to be held: all of `body`, then `close` if there."""

    body: re.Pattern[str]
    close: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """The text up to `keep`, redacted; what follows is undecided, or the `rest` of a secret."""

    out: str
    keep: int
    rest: Rest | None = None


# A pass reads `text` from `start` on; what precedes is context. When `final`, nothing follows.
Pass = Callable[[str, int, bool], Scan]


class Spans:
    """Collects the output of a pass: what is kept as it was, and what stands for the secrets."""

    __slots__ = ("_pieces", "_text", "at")

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._pieces: list[str] = []
        self.at = start

    def replace(self, start: int, end: int, label: str) -> None:
        """Hide `start` to `end`; both lie after all that was hidden before."""
        self._pieces += (self._text[self.at : start], placeholder(label))
        self.at = end

    def until(self, keep: int, rest: Rest | None = None) -> Scan:
        """End the pass at `keep`."""
        keep = max(keep, self.at)
        return Scan("".join(self._pieces) + self._text[self.at : keep], keep, rest)
