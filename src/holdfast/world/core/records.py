"""How a record is written as one line of a journal.

    { "seq":7,"epoch":2,"version":1,"record":{"any":"JSON"},"crc":"770af622"}

`seq` counts the records of the log from 1, `epoch` the writers that opened it, `version` is that
of the schema it was written with. The first line of a writer says `opening` instead of `record`
and repeats the `seq` before it. The checksum covers what stands before it, from the first quote.

The space after the first brace makes the beginning of a line unmistakable: in compact JSON a
quote that follows a space either ends a string, so that no word can come after it, or is escaped.
Whatever happens to a file, a reader can look for `{ "seq":` and find every line that is intact.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NewType
from zlib import crc32

import msgspec

from holdfast.world.failures import RecordRefused

MARKER = b'{ "seq":'
RECORD_BYTES_MAX = 16 * 1024 * 1024

Encoded = NewType("Encoded", bytes)
"""The JSON of one record, known to fit in a line: only the two functions below make it."""

_encode = msgspec.json.Encoder().encode
_check = msgspec.json.Decoder(msgspec.Raw).decode


class Record(msgspec.Struct, frozen=True):
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


def write_line(record: Record) -> bytes:
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
