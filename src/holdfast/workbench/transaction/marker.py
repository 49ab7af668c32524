"""Marker file: a transaction as readable JSON with a checksum. Pure.

Line 1 is the SHA-256 of line 2, which is the JSON document.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

import msgspec

from holdfast.nouns import PathInvalid, RelativePath
from holdfast.workbench.failures import MarkerDamaged, MarkerForeign
from holdfast.workbench.model import EntryKind, PathEntry
from holdfast.workbench.transaction.machine import Marker, PathOperation, TransactionState, Verb

_VERSION: Final = 1


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    kind: EntryKind = msgspec.field(name="sort")
    mode: int
    content: str = ""
    target: bytes = b""
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    size: int = 0
    mtime_ns: int = 0


class _Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    verb: Verb
    path: str
    slot: int
    before: _Entry | None
    after: _Entry | None


class _Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    key: str
    state: TransactionState
    operations: tuple[_Operation, ...]
    facts: dict[str, object] = {}


_decoder: Final = msgspec.json.Decoder(_Marker)


def encode_marker(marker: Marker) -> bytes:
    steps = tuple(
        _Operation(
            step.verb, str(step.path), step.slot, _written(step.before), _written(step.after)
        )
        for step in marker.operations
    )
    facts = dict(marker.facts)
    body = msgspec.json.encode(_Marker(_VERSION, marker.key, marker.state, steps, facts))
    return b"%s\n%s\n" % (_sum(body), body)


def decode_marker(raw: bytes) -> Marker:
    """Decode a marker.

    Raises MarkerDamaged on a checksum mismatch, MarkerForeign for another version.
    """
    head, _, rest = raw.partition(b"\n")
    if rest[-1:] != b"\n" or head != _sum(rest[:-1]):
        raise MarkerDamaged(reason="its checksum does not match")
    try:
        read = _decoder.decode(rest)
        steps = tuple(map(_step, read.operations))
    except (msgspec.DecodeError, PathInvalid, ValueError) as error:
        raise MarkerForeign(reason="its format is unknown") from error
    if read.version != _VERSION:
        raise MarkerForeign(reason=f"it is of version {read.version}")
    return Marker(read.key, read.state, steps, read.facts)


def _sum(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode()


def _written(entry: PathEntry | None) -> _Entry | None:
    if entry is None:
        return None
    return _Entry(
        entry.kind,
        entry.mode,
        entry.content.hex(),
        entry.target,
        entry.xattrs,
        entry.size,
        entry.mtime_ns,
    )


def _step(read: _Operation) -> PathOperation:
    path = RelativePath.from_text(read.path)
    return PathOperation(read.verb, path, _entry(read.before), _entry(read.after), read.slot)


def _entry(read: _Entry | None) -> PathEntry | None:
    if read is None:
        return None
    return PathEntry(
        read.kind,
        read.mode,
        bytes.fromhex(read.content),
        read.target,
        read.xattrs,
        read.size,
        read.mtime_ns,
    )
