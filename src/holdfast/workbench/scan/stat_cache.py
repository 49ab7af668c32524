"""Decide by what the system says of a file whether it must be read again.

The sight of a directory is what `stat` said of each name in it. While a sight stays the same, so
does the content, with one exception: a file that was written to in the very moment in which it
was looked at can be written to again without a trace, because file systems have coarse clocks.
Such a file is racy: its line in the sight is blanked, equals nothing, and is read again next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Protocol

RACY_NS = 20_000_000  # two ticks of the slowest kernel clock
RACY_COARSE_NS = 2_000_000_000  # where times are whole seconds; FAT counts in twos
_SECOND_NS = 1_000_000_000

# As they stand in what the system call `statx` of Linux gives: group, mode, inode, size, the two
# times in seconds and nanoseconds, device.
_LINE = Struct("=IHxxQQqIxxxxqIxxxxII")
_LENGTH = Struct("<Q")
_WORDS = 8
LINE_BYTES = _LINE.size
BLANK = bytes(LINE_BYTES)
assert LINE_BYTES == 8 * _WORDS


class _Status(Protocol):
    @property
    def st_gid(self) -> int: ...
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


def stat_line(status: _Status) -> bytes:
    """One file as the system describes it; never blank."""
    return _LINE.pack(
        status.st_gid,
        status.st_mode,
        status.st_ino,
        status.st_size,
        *divmod(status.st_ctime_ns, _SECOND_NS),
        *divmod(status.st_mtime_ns, _SECOND_NS),
        *_device(status.st_dev),
    )


def is_same(one: _Status, other: _Status) -> bool:
    """Whether two descriptions would make the same line; cheaper than to make them."""
    return (
        one.st_ctime_ns == other.st_ctime_ns
        and one.st_mtime_ns == other.st_mtime_ns
        and one.st_size == other.st_size
        and one.st_ino == other.st_ino
        and one.st_mode == other.st_mode
        and one.st_gid == other.st_gid
        and one.st_dev == other.st_dev
    )


def is_same_inode(one: bytes, other: bytes) -> bool:
    """Whether two lines are of one inode; what is blank is not."""
    return BLANK not in (one, other) and _inode(one) == _inode(other)


def _inode(line: bytes) -> tuple[int, int, int]:
    _, _, inode, *_, major, minor = _LINE.unpack(line)
    return inode, major, minor


@cache
def _device(number: int) -> tuple[int, int]:
    """The two halves that Linux knows a device by; no two devices have the same, anywhere."""
    major = (number >> 8) & 0xFFF | (number >> 32) & 0xFFFFF000
    minor = number & 0xFF | (number >> 12) & 0xFFFFFF00
    return major, minor


def is_racy(changed_ns: int, *, scanned_ns: int) -> bool:
    """Whether what changed then could have changed again unseen after it was looked at."""
    margin = RACY_NS if changed_ns % _SECOND_NS else RACY_COARSE_NS
    return changed_ns >= scanned_ns - margin


def encode_stats(names: Sequence[bytes], lines: Sequence[bytes]) -> bytes:
    """Write names and the line of each; the same, in the same order, gives the same bytes.

    Lines are written word by word: the first of all lines, then the second. So whoever has the
    same words from the system compares them all at once.
    """
    spelled = b"\0".join(names)
    words = memoryview(b"".join(lines)).cast("Q")
    columns = (words[word::_WORDS].tobytes() for word in range(_WORDS))
    return b"".join((_LENGTH.pack(len(spelled)), spelled, *columns))


def decode_stats(stats: bytes) -> dict[bytes, bytes]:
    """Read what `encode_stats` wrote: the line of each name; raise ValueError if it is not that."""
    names = names_of(stats)
    columns = memoryview(stats)[len(stats) - LINE_BYTES * len(names) :].cast("Q")
    lines = bytearray(LINE_BYTES * len(names))
    words = memoryview(lines).cast("Q")
    for word in range(_WORDS):
        words[word::_WORDS] = columns[word * len(names) : (word + 1) * len(names)]
    starts = range(0, len(lines), LINE_BYTES)
    return {
        name: bytes(lines[start : start + LINE_BYTES])
        for name, start in zip(names, starts, strict=True)
    }


def names_of(stats: bytes) -> list[bytes]:
    """The names in a sight; raise ValueError if that is none."""
    if len(stats) < _LENGTH.size:
        raise ValueError("this is too short for a sight")
    (length,) = _LENGTH.unpack_from(stats)
    names = stats[_LENGTH.size : _LENGTH.size + length].split(b"\0") if length else []
    if len(stats) != _LENGTH.size + length + LINE_BYTES * len(names):
        raise ValueError("this sight has not a line for each name")
    return names
