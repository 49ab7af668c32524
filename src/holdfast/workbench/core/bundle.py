"""How small files are written as one record, in which what they share is stored once.

    count 4 | the length of each, 4 | the name of each, 32 | their bytes, one after the other

Files that lie together have words in common, and a compressor that sees them together needs half
of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from struct import Struct

from holdfast.workbench.model import CONTENT_ID_BYTES

SMALL_BYTES_MAX = 12 * 2**10
"""What is larger is stored by itself: it has most in common with itself."""
BUNDLE_BYTES = 96 * 2**10
"""So much is put together: whoever reads one file reads all of it, and a damage spoils all."""

_LENGTH = Struct("<I")
_ENTRY_BYTES = _LENGTH.size + CONTENT_ID_BYTES


def encode_bundle(files: Mapping[bytes, bytes]) -> bytes:
    """Write files, each by the name of its content."""
    lengths = map(_LENGTH.pack, map(len, files.values()))
    return b"".join((_LENGTH.pack(len(files)), *lengths, *files, *files.values()))


def decode_bundle(data: bytes) -> dict[bytes, bytes]:
    """Read what `encode_bundle` wrote; raise ValueError when nobody could have."""
    count = _LENGTH.unpack_from(data)[0] if len(data) >= _LENGTH.size else 0
    names_at = _LENGTH.size * (count + 1)
    begin = _LENGTH.size + _ENTRY_BYTES * count
    if len(data) < begin:
        raise ValueError("this is too short for a bundle")
    lengths = [length for (length,) in _LENGTH.iter_unpack(data[_LENGTH.size : names_at])]
    ends = list(accumulate(lengths, initial=begin))
    if ends[-1] != len(data):
        raise ValueError("this bundle has not the length that it says")
    starts = range(names_at, begin, CONTENT_ID_BYTES)
    names = (data[start : start + CONTENT_ID_BYTES] for start in starts)
    return dict(zip(names, (data[one:next] for one, next in pairwise(ends)), strict=True))


def rooms(lengths: Sequence[int], record_bytes: int) -> list[int]:
    """How much of a record each file of it takes: by its length, and all of them take all of it."""
    ends = list(accumulate((_ENTRY_BYTES + length for length in lengths), initial=0))
    return [
        next * record_bytes // ends[-1] - one * record_bytes // ends[-1]
        for one, next in pairwise(ends)
    ]
