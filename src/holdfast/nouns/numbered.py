"""A word and a number in one text, as cursors and leases are written."""

from __future__ import annotations

import re
from functools import lru_cache

NUMBER_MAX = 2**63 - 1  # what every store of ours holds
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


def split(text: str, mark: str) -> tuple[str, int] | None:
    """Read `word mark number`, or answer None; each pair has exactly one text."""
    word, _, digits = text.rpartition(mark)
    if _NUMBER.fullmatch(digits) is None or not is_pair(word, int(digits)):
        return None
    return word, int(digits)


def is_pair(word: str, number: int) -> bool:
    """Whether a word and a number have a text."""
    return 0 <= number <= NUMBER_MAX and _is_word(word)


@lru_cache(maxsize=1024)  # the same few logs and leases are named again and again
def _is_word(word: str) -> bool:
    return _WORD.fullmatch(word) is not None
