"""Decide by what the system says of a file whether it must be read again.

The sight of a directory is what `stat` said of each name in it. While a sight stays the same, so
does the content, with one exception: a file that was written to in the very moment in which it
was looked at can be written to again without a trace, because file systems have coarse clocks.
Such a file is racy: its line in the sight is blanked, equals nothing, and is read again next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Protocol

RACY_NS = 20_000_000  # two ticks of the slowest kernel clock
RACY_COARSE_NS = 2_000_000_000  # where times are whole seconds; FAT counts in twos
_SECOND_NS = 1_000_000_000

_LINE = Struct("<IQQQqq")
_LENGTH = Struct("<Q")
LINE_BYTES = _LINE.size
BLANK = bytes(LINE_BYTES)


class _Status(Protocol):
    @property
    def st_mode(self) -> int: ...
    @property
    def st_ino(self) -> int: ...
    @property
    def st_dev(self) -> int: ...
    @property
    def st_size(self) -> int: ...
    @property
    def st_mtime_ns(self) -> int: ...
    @property
    def st_ctime_ns(self) -> int: ...


def line_of(status: _Status) -> bytes:
    """One file as the system describes it; never blank."""
    return _LINE.pack(
        status.st_mode,
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )


def is_racy(changed_ns: int, *, looked_ns: int) -> bool:
    """Whether what changed then could have changed again unseen after it was looked at."""
    margin = RACY_NS if changed_ns % _SECOND_NS else RACY_COARSE_NS
    return changed_ns >= looked_ns - margin


def encode_sight(names: Sequence[bytes], lines: Sequence[bytes]) -> bytes:
    """Write names and the line of each; the same, in the same order, gives the same bytes."""
    spelled = b"\0".join(names)
    return b"".join((_LENGTH.pack(len(spelled)), spelled, *lines))


def decode_sight(sight: bytes) -> dict[bytes, bytes]:
    """Read what `encode_sight` wrote: the line of each name."""
    (length,) = _LENGTH.unpack_from(sight)
    at = _LENGTH.size + length
    names = sight[_LENGTH.size : at].split(b"\0") if length else []
    starts = range(at, len(sight), LINE_BYTES)
    return {
        name: sight[start : start + LINE_BYTES] for name, start in zip(names, starts, strict=True)
    }
