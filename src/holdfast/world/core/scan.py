"""Find every intact record in the bytes of a journal, whatever happened to the rest.

The scanner is fed the bytes piece by piece and answers with what it found, in the order of the
file: records, and between them the damage that it had to step over. It holds no more than one
record and one piece at a time, and no bytes whatsoever make it raise.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from zlib import crc32

from holdfast.world.core.records import MARKER, RECORD_BYTES_MAX, Record, accept_record
from holdfast.world.failures import RecordRefused

_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_HEAD = re.compile(
    rb'\{ "seq":%b,"epoch":%b,"version":%b,"(record|opening)":' % (_NUMBER, _NUMBER, _NUMBER)
)
_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_TAIL_BYTES = len(b',"crc":"00000000"}')
_COVERED_AT = len(b"{ ")
_LINE_BYTES_MAX = RECORD_BYTES_MAX + 256


class Reason(StrEnum):
    """What is wrong with a stretch of a journal."""

    ZEROS = "zeros"  # the file system kept the length and lost the content
    TORN = "torn"  # the last write was not finished
    UNREADABLE = "unreadable"  # not what was written: its checksum or its form is wrong
    DUPLICATE = "duplicate"  # intact, but it was there already
    STALE = "stale"  # intact, but its writer had been replaced by a newer one
    MISSING = "missing"  # nothing is here, and records should be


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch of a journal that holds no record to keep; it follows the record `after_seq`."""

    offset: int
    length: int
    after_seq: int
    reason: Reason


Found = Record | Damage


class Scanner:
    """Reads one journal from its beginning; `end` is where its last intact record ends.

    Or from the end of a line that was intact: then it must be told of which record, and where.
    """

    def __init__(self, *, seq: int = 0, epoch: int = 0, at: int = 0) -> None:
        self.seq = seq
        self.epoch = epoch
        self.end = at
        self.is_terminated = True
        self._held = b""
        self._held_at = at
        self._bad_at = 0
        self._bad_length = 0
        self._bad_is_zeros = True
        self._found: list[Found] = []
        self._usual: bytes | None = None  # what stands between number and record in the last line
        self._version = 0

    def feed(self, piece: bytes) -> list[Found]:
        """Take the next bytes of the file; return what is now known."""
        self._read(self._held + piece, is_last=False)
        return self._take()

    def finish(self) -> list[Found]:
        """Learn that the file ends here; return the rest."""
        self._read(self._held, is_last=True)
        self._close_damage(at_the_end=True)
        return self._take()

    def _take(self) -> list[Found]:
        found, self._found = self._found, []
        return found

    def _read(self, text: bytes, *, is_last: bool) -> None:
        base, at, newline = self._held_at, 0, text.find(b"\n")
        while (start := text.find(MARKER, at)) >= 0:
            if start > at:
                self._step_over(text[at:start], base + at)
            if 0 <= newline < start:
                newline = text.find(b"\n", start)
            after = self._whole_line(text, start, newline, base) if newline >= 0 else None
            if after is None:
                stop = _stop(text, start, newline, is_last=is_last)
                if stop is None:
                    at = start
                    break
                after = self._part_of_line(text[start:stop], base + start) + start
            at = after
        else:
            # What could be the first bytes of a marker is kept until its other bytes are seen.
            keep = 0 if is_last else min(len(text) - at, len(MARKER) - 1)
            self._step_over(text[at : len(text) - keep], base + at)
            at = len(text) - keep
        self._held, self._held_at = text[at:], base + at

    def _whole_line(self, text: bytes, start: int, newline: int, base: int) -> int | None:
        """Read an intact line quickly; None when it needs a closer look."""
        end = newline - _TAIL_BYTES
        body = text[start + _COVERED_AT : end]
        if text[end:newline] != b',"crc":"%08x"}' % crc32(body):
            return None
        if self._usual is not None and not self._bad_length:
            expected = b'"seq":%d%b' % (self.seq + 1, self._usual)
            if body.startswith(expected):  # as almost every line does
                self.seq, self.end, self.is_terminated = self.seq + 1, base + newline + 1, True
                data = body[len(expected) :]
                self._found.append(Record(self.seq, self.epoch, self._version, data))
                return newline + 1
        head = _HEAD.match(text, start, newline)
        if head is None:
            return None
        record = _record(head, text[head.end() : end])
        if self._keep(record, base + start, newline + 1 - start, is_terminated=True):
            self._usual = None if record.is_opening else text[head.end(1) : head.end()]
            self._version = record.version
        return newline + 1

    def _part_of_line(self, part: bytes, offset: int) -> int:
        """Look for an intact record at the beginning of `part`; return how much is dealt with."""
        head = _HEAD.match(part)
        if head is not None:
            running, at = 0, _COVERED_AT
            for tail in _TAIL.finditer(part, head.end()):
                running, at = crc32(part[at : tail.start()], running), tail.start()
                if running == int(tail[1], 16) and _is_json(data := part[head.end() : at]):
                    self._keep(_record(head, data), offset, tail.end(), is_terminated=False)
                    return tail.end()
        self._step_over(part, offset)
        return len(part)

    def _keep(self, record: Record, offset: int, length: int, *, is_terminated: bool) -> bool:
        """Accept an intact record if it goes on where the last one stopped; say whether it does."""
        explained = self._close_damage(at_the_end=False)
        expected = self.seq if record.is_opening else self.seq + 1
        if record.epoch < self.epoch:
            self._found.append(Damage(offset, length, self.seq, Reason.STALE))
        elif record.seq < expected or (record.is_opening and record.epoch == self.epoch):
            self._found.append(Damage(offset, length, self.seq, Reason.DUPLICATE))
        else:
            if record.seq > expected and not explained:
                self._found.append(Damage(offset, 0, self.seq, Reason.MISSING))
            if record.epoch != self.epoch:
                self._usual = None
            self.seq, self.epoch = record.seq, record.epoch
            self.end, self.is_terminated = offset + length, is_terminated
            self._found.append(record)
            return True
        return False

    def _step_over(self, skipped: bytes, offset: int) -> None:
        """Note bytes that are no record; newlines where one may be are nobody's damage."""
        if not self._bad_length:
            rest = skipped.lstrip(b"\n")
            newlines = len(skipped) - len(rest)
            if newlines and offset == self.end:
                self.end, self.is_terminated = offset + newlines, True
            skipped, self._bad_at, self._bad_is_zeros = rest, offset + newlines, True
        self._bad_length += len(skipped)
        self._bad_is_zeros = self._bad_is_zeros and not skipped.strip(b"\0\n")

    def _close_damage(self, *, at_the_end: bool) -> bool:
        """Report the bytes stepped over so far, if any."""
        if not self._bad_length:
            return False
        reason = Reason.TORN if at_the_end else Reason.UNREADABLE
        reason = Reason.ZEROS if self._bad_is_zeros else reason
        self._found.append(Damage(self._bad_at, self._bad_length, self.seq, reason))
        self._bad_length = 0
        return True


def _stop(text: bytes, start: int, newline: int, *, is_last: bool) -> int | None:
    """Where a line that begins at `start` ends at the latest; None when more bytes may tell."""
    limit = newline if newline >= 0 else len(text)
    another = text.find(MARKER, start + len(MARKER), limit)
    if another >= 0:
        return another
    if newline >= 0 or is_last:
        return limit
    # No line is that long, so this is none; its last bytes may begin the marker of the next.
    return limit - len(MARKER) + 1 if limit - start > _LINE_BYTES_MAX else None


def _record(head: re.Match[bytes], data: bytes) -> Record:
    seq, epoch, version, word = head.groups()
    return Record(int(seq), int(epoch), int(version), data, word == b"opening")


def _is_json(data: bytes) -> bool:
    try:
        accept_record(data)
    except RecordRefused:
        return False
    return True
