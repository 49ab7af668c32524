"""Decide by what the system says of a file whether it must be read again.

The sight of a directory is what `stat` said of each name in it. While a sight stays the same, so
does the content, with one exception: a file that was written to in the very moment in which it
was looked at can be written to again without a trace, because file systems have coarse clocks.
Such a file is racy: its line in the sight is blanked, equals nothing, and is read again next time.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Protocol

RACY_NS = 20_000_000  # two ticks of the slowest kernel clock
RACY_COARSE_NS = 2_000_000_000  # where times are whole seconds; FAT counts in twos
_SECOND_NS = 1_000_000_000

_LINE = Struct("<IQQQqq")
_LENGTH = Struct("<H")
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


def encode_sight(lines: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Write names and their lines, in the order given, which must be that of the names."""
    return b"".join(
        [part for name, line in lines for part in (_LENGTH.pack(len(name)), name, line)]
    )


def decode_sight(sight: bytes) -> dict[bytes, bytes]:
    """Read what `encode_sight` wrote: the line of each name."""
    lines: dict[bytes, bytes] = {}
    at = 0
    while at < len(sight):
        (name_bytes,) = _LENGTH.unpack_from(sight, at)
        at += _LENGTH.size + name_bytes
        lines[sight[at - name_bytes : at]] = sight[at : at + LINE_BYTES]
        at += LINE_BYTES
    return lines
