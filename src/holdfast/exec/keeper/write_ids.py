"""Log of stdin write ids: whether a write is new, done, or was interrupted by a crash.

The log file has a fixed number of slots, used in turn. A write takes the next slot when it begins,
and marks it when it is done; the oldest id is overwritten.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from zlib import crc32

SLOTS = 4096
SLOT_BYTES = 32

_SLOT = struct.Struct("<Q16sB3x")
_SUM = struct.Struct("<I")


class WriteState(IntEnum):
    """Progress of a write."""

    BEGUN = 1
    DONE = 2


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of the log file."""

    ordinal: int
    digest: bytes
    state: WriteState

    @property
    def offset(self) -> int:
        return self.ordinal % SLOTS * SLOT_BYTES

    def pack(self) -> bytes:
        body = _SLOT.pack(self.ordinal, self.digest, self.state)
        return body + _SUM.pack(crc32(body))


class WriteLog:
    """The latest write ids of one process."""

    def __init__(self, file: bytes = b"") -> None:
        found = sorted(_slots(file), key=lambda slot: slot.ordinal)
        self._known = OrderedDict((slot.digest, slot) for slot in found)
        self._next = found[-1].ordinal + 1 if found else 0

    def look(self, write_id: str) -> WriteState | None:
        """Return the state of a write id; None if it is new, or was overwritten."""
        slot = self._known.get(_digest(write_id))
        return None if slot is None else slot.state

    def begin(self, write_id: str) -> Slot:
        """Begin a write; returns the slot to write to the file before the first byte of data."""
        slot = Slot(self._next, _digest(write_id), WriteState.BEGUN)
        self._next += 1
        self._known[slot.digest] = slot
        while len(self._known) > SLOTS:
            self._known.popitem(last=False)
        return slot

    def withdraw(self, begun: Slot) -> None:
        """Undo `begin` of a write whose slot could not be written to the file."""
        del self._known[begun.digest]

    def finish(self, begun: Slot) -> Slot:
        """Finish a write; returns the slot to write to the file before the caller gets the
        result.
        """
        slot = self._known[begun.digest] = Slot(begun.ordinal, begun.digest, WriteState.DONE)
        return slot


def _digest(write_id: str) -> bytes:
    return blake2b(write_id.encode(), digest_size=16).digest()


def _slots(file: bytes) -> Iterator[Slot]:
    for place in range(0, len(file) - SLOT_BYTES + 1, SLOT_BYTES):
        body = file[place : place + _SLOT.size]
        if file[place + _SLOT.size : place + SLOT_BYTES] == _SUM.pack(crc32(body)):
            ordinal, digest, state = _SLOT.unpack(body)
            # What was never written is all zero, and so is its sum.
            if state:
                yield Slot(ordinal, digest, WriteState(state))
