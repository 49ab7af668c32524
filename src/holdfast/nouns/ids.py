"""Ids that sort by the time they were made: `ses_01jb…`.

An id is a prefix that says of what, 48 bits of milliseconds since the epoch and 80 bits of
chance, in lower-case Crockford base32: 26 characters without i, l, o and u. Time and chance are
given; making no two alike within a millisecond is up to whoever gives them.
"""

from __future__ import annotations

import re
from typing import NewType

from holdfast.nouns.escapes import shown
from holdfast.nouns.failures import IdInvalid

Id = NewType("Id", str)

ENTROPY_BYTES = 10
_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [one + other for one in _DIGITS for other in _DIGITS]
_PREFIX = re.compile(r"[a-z]{2,12}", re.ASCII)
_STAMP = re.compile(f"[0-7][{_DIGITS}]{{25}}", re.ASCII)  # 26 digits hold 130 bits, an id 128


def make_id(prefix: str, at_ms: int, entropy: bytes) -> Id:
    """Write one id; later ones sort after it."""
    assert _PREFIX.fullmatch(prefix), f"{prefix!r} is no prefix"
    assert 0 <= at_ms < 2**48
    assert len(entropy) == ENTROPY_BYTES
    number = at_ms << 8 * ENTROPY_BYTES | int.from_bytes(entropy, "big")
    stamp = "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -10, -10)])
    return Id(f"{prefix}_{stamp}")


def check_id(text: str, prefix: str) -> Id:
    """Take a text that someone gave us as an id of this kind, or refuse it."""
    head, _, stamp = text.partition("_")
    if head != prefix or _STAMP.fullmatch(stamp) is None:
        raise IdInvalid(id=shown(text), prefix=prefix)
    return Id(text)
