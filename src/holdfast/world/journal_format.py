"""How a record is written as one line of a journal.

    { "seq":7,"epoch":2,"version":1,"record":{"any":"JSON"},"crc":"770af622"}

`seq` counts the records of the log from 1, `epoch` the writers that opened it, `version` is that
of the schema it was written with. The first line of a writer says `opening` instead of `record`
and repeats the `seq` before it. The checksum covers what stands before it, from the first quote.

The space after the first brace makes the beginning of a line unmistakable: in compact JSON a
quote that follows a space either ends a string, so that no word can come after it, or is escaped.
Whatever happens to a file, a reader can look for `{ "seq":` and find every line that is intact.

Find every intact record in the bytes of a journal, whatever happened to the rest.

The scanner is fed the bytes piece by piece and answers with what it found, in the order of the
file: records, and between them the damage that it had to step over. It holds no more than one
record and one piece at a time, and no bytes whatsoever make it raise.

Decision: docs/decisions/0010-journal-format-and-single-writer.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NewType
from zlib import crc32

import msgspec

from holdfast.world.failures import RecordRefused, StoreForeign, StoreTooNew

MARKER = b'{ "seq":'
RECORD_BYTES_MAX = 16 * 1024 * 1024

Encoded = NewType("Encoded", bytes)
"""The JSON of one record, known to fit in a line: only the two functions below make it."""

_encode = msgspec.json.Encoder().encode
_check = msgspec.json.Decoder(msgspec.Raw).decode


class JournalRecord(msgspec.Struct, frozen=True):
    """One line of a journal, as it was written."""

    seq: int
    epoch: int
    version: int
    data: bytes
    is_opening: bool = False


def encode_record(value: object) -> Encoded:
    """Write a value as the JSON of a record, or refuse it: NaN and infinity too, at any depth."""
    try:
        data = _encode(value)
        if b"null" in data:
            _check_finite(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise RecordRefused(reason=f"{type(value).__name__}: {error}") from error
    return accept_record(data)  # what a `Raw` brings along was never checked


def accept_record(data: bytes) -> Encoded:
    """Make sure that bytes are one compact JSON text that a line can hold, or refuse them."""
    if len(data) > RECORD_BYTES_MAX:
        raise RecordRefused(reason=f"it is longer than {RECORD_BYTES_MAX} bytes")
    if b"\n" in data or MARKER in data:
        raise RecordRefused(reason="it is not compact")
    try:
        _check(data)
        if not data.isascii():
            str(data, "utf-8")
    except (ValueError, RecursionError) as error:
        raise RecordRefused(reason=str(error)) from error
    return Encoded(data)


def _check_finite(value: object) -> None:
    """Raise ValueError if a number in it is none: the encoder has written null in its place."""
    plain = msgspec.to_builtins(value, str_keys=True, enc_hook=_skip_raw)
    json.dumps(plain, allow_nan=False)


def _skip_raw(value: object) -> None:
    assert isinstance(value, msgspec.Raw), f"{type(value).__name__} was encoded a moment ago"


def write_line(record: JournalRecord) -> bytes:
    """The line of one record, newline included."""
    word = b"opening" if record.is_opening else b"record"
    return _line(record.seq, _rest(record.epoch, record.version, word), record.data)


def write_lines(batch: Sequence[Encoded], *, first: int, epoch: int, version: int) -> bytes:
    """The lines of a batch of records that one writer appends, the first with seq `first`."""
    rest = _rest(epoch, version, b"record")
    return b"".join([_line(seq, rest, data) for seq, data in enumerate(batch, first)])


def _rest(epoch: int, version: int, word: bytes) -> bytes:
    return b',"epoch":%d,"version":%d,"%b":' % (epoch, version, word)


def _line(seq: int, rest: bytes, data: bytes) -> bytes:
    body = b'"seq":%d%b%b' % (seq, rest, data)
    return b'{ %b,"crc":"%08x"}\n' % (body, crc32(body))


_NUMBER = rb"(0|[1-9][0-9]{0,17})"
_HEAD = re.compile(
    rb'\{ "seq":%b,"epoch":%b,"version":%b,"(record|opening)":' % (_NUMBER, _NUMBER, _NUMBER)
)
_TAIL = re.compile(rb',"crc":"([0-9a-f]{8})"\}')
_TAIL_BYTES = len(b',"crc":"00000000"}')
_COVERED_AT = len(b"{ ")
_LINE_BYTES_MAX = RECORD_BYTES_MAX + 256


class DamageReason(StrEnum):
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
    reason: DamageReason


Found = JournalRecord | Damage


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
                self._found.append(JournalRecord(self.seq, self.epoch, self._version, data))
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

    def _keep(
        self, record: JournalRecord, offset: int, length: int, *, is_terminated: bool
    ) -> bool:
        """Accept an intact record if it goes on where the last one stopped; say whether it does."""
        explained = self._close_damage(at_the_end=False)
        expected = self.seq if record.is_opening else self.seq + 1
        if record.epoch < self.epoch:
            self._found.append(Damage(offset, length, self.seq, DamageReason.STALE))
        elif record.seq < expected or (record.is_opening and record.epoch == self.epoch):
            self._found.append(Damage(offset, length, self.seq, DamageReason.DUPLICATE))
        else:
            if record.seq > expected and not explained:
                self._found.append(Damage(offset, 0, self.seq, DamageReason.MISSING))
            if record.epoch != self.epoch:
                self._usual = None
            self.seq, self.epoch = record.seq, record.epoch
            self.end, self.is_terminated = offset + length, is_terminated
            self._found.append(record)
            return True
        return False

    def _step_over(self, skipped: bytes, offset: int) -> None:
        """Note bytes that are not a record; extra newlines between records are not damage."""
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
        reason = DamageReason.TORN if at_the_end else DamageReason.UNREADABLE
        reason = DamageReason.ZEROS if self._bad_is_zeros else reason
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


def _record(head: re.Match[bytes], data: bytes) -> JournalRecord:
    seq, epoch, version, word = head.groups()
    return JournalRecord(int(seq), int(epoch), int(version), data, word == b"opening")


def _is_json(data: bytes) -> bool:
    try:
        accept_record(data)
    except RecordRefused:
        return False
    return True


# What every writer of a journal writes down first, and whether we may go on from it.

FORMAT = 1
_UNKNOWN = "a log of an unknown kind"


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was wrong with a journal when it was opened, and where the original bytes are now.

    `damage` lists the first stretches of a total of `count`.
    """

    damage: tuple[Damage, ...] = ()
    count: int = 0
    set_aside: tuple[str, ...] = ()


class JournalHeader(msgspec.Struct, frozen=True):
    """What a log is, in which format, and what its writer had to repair before going on."""

    format: int
    log: str
    schema: str
    repairs: Repairs


class _Format(msgspec.Struct, frozen=True):
    """All that is certain of an opening of any format, older or newer."""

    format: int


def read_journal_header(data: bytes, *, path: str) -> JournalHeader:
    """Read an opening, or refuse a journal that is newer than we are."""
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found <= FORMAT:
            return msgspec.json.decode(data, type=JournalHeader)
    except msgspec.DecodeError as error:
        raise StoreForeign(path=path, expected="a journal", found=_UNKNOWN) from error
    raise StoreTooNew(path=path, schema="journal format", found=found, newest=FORMAT)
