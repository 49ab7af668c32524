"""Stat records: decide from stat(2) results whether a file must be read again. Pure.

A stat record of a directory holds the names in it and one 64-byte line of stat fields for each.
While the line of a file is unchanged, so is its content, with one exception: file systems have
coarse clocks, so a file written to in the same tick in which it was scanned can change again
without a new time. Such a file is *racy* (as in git): its line is blanked, which equals no real
line, and it is read again next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Protocol

# Two ticks of the slowest kernel clock.
RACY_NS = 20_000_000
# Where times are whole seconds; FAT counts in twos.
RACY_COARSE_NS = 2_000_000_000
_SECOND_NS = 1_000_000_000

# In the layout of struct statx, so that kernel results can be compared without conversion: gid,
# mode, inode, size, ctime and mtime as seconds and nanoseconds, device.
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
    """Encode the stat fields of one file; never blank."""
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
    """Whether two results encode to the same line, without encoding them."""
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
    """Whether two lines are of one inode; false if either is blank."""
    return BLANK not in (one, other) and _inode(one) == _inode(other)


def _inode(line: bytes) -> tuple[int, int, int]:
    _, _, inode, *_, major, minor = _LINE.unpack(line)
    return inode, major, minor


@cache
def _device(number: int) -> tuple[int, int]:
    """Split st_dev into major and minor, as statx reports it."""
    major = (number >> 8) & 0xFFF | (number >> 32) & 0xFFFFF000
    minor = number & 0xFF | (number >> 12) & 0xFFFFFF00
    return major, minor


def is_racy(changed_ns: int, *, scanned_ns: int) -> bool:
    """Whether a change at `changed_ns` could be followed by another with the same timestamp."""
    margin = RACY_NS if changed_ns % _SECOND_NS else RACY_COARSE_NS
    return changed_ns >= scanned_ns - margin


def encode_stats(names: Sequence[bytes], lines: Sequence[bytes]) -> bytes:
    """Encode names and their lines, in order.

    Lines are transposed into columns: first words of all lines, then second words. A strided copy
    of statx buffers then compares as one block.
    """
    spelled = b"\0".join(names)
    words = memoryview(b"".join(lines)).cast("Q")
    columns = (words[word::_WORDS].tobytes() for word in range(_WORDS))
    return b"".join((_LENGTH.pack(len(spelled)), spelled, *columns))


def decode_stats(stats: bytes) -> dict[bytes, bytes]:
    """Return the line of each name; raises ValueError if the record is malformed."""
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
    """Return the names in a stat record; raises ValueError if it is malformed."""
    if len(stats) < _LENGTH.size:
        raise ValueError("the stat record is too short")
    (length,) = _LENGTH.unpack_from(stats)
    names = stats[_LENGTH.size : _LENGTH.size + length].split(b"\0") if length else []
    if len(stats) != _LENGTH.size + length + LINE_BYTES * len(names):
        raise ValueError("the stat record does not have a line for each name")
    return names
