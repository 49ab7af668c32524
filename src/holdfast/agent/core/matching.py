"""Find lines that match in a text, with those around them, as ripgrep reports them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Hit(NamedTuple):
    """A line that matches, or one that stands near it; numbered from 1."""

    number: int
    text: str
    is_match: bool


def compiled(pattern: str, *, is_literal: bool, ignores_case: bool) -> re.Pattern[str]:
    """A pattern for lines; raises re.error if it is none."""
    return re.compile(re.escape(pattern) if is_literal else pattern, re.I if ignores_case else 0)


def hits_in(data: bytes, pattern: re.Pattern[str], *, around: int) -> Iterator[Hit]:
    """The lines of a file that match, and those around them, each once and in order."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    if not lines[-1]:
        lines.pop()
    texts = [line.removesuffix("\r") for line in lines]
    matching = [number for number, text in enumerate(texts) if pattern.search(text)]
    shown, matches = -1, set(matching)
    for number in matching:
        first = max(shown + 1, number - around)
        beyond = min(len(texts), number + around + 1)
        for near in range(first, beyond):
            yield Hit(near + 1, texts[near], near in matches)
        shown = max(shown, beyond - 1)
