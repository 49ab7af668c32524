"""What every writer of a journal writes down first, and whether we may go on from it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from holdfast.world.core.scan import Damage
from holdfast.world.failures import StoreForeign, StoreTooNew

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


class Opening(msgspec.Struct, frozen=True):
    """What a log is, in which format, and what its writer had to repair before going on."""

    format: int
    log: str
    schema: str
    repairs: Repairs


class _Format(msgspec.Struct, frozen=True):
    """All that is certain of an opening of any format, older or newer."""

    format: int


def read_opening(data: bytes, *, path: str) -> Opening:
    """Read an opening, or refuse a journal that is newer than we are."""
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found <= FORMAT:
            return msgspec.json.decode(data, type=Opening)
    except msgspec.DecodeError as error:
        raise StoreForeign(path=path, expected="a journal", found=_UNKNOWN) from error
    raise StoreTooNew(path=path, schema="journal format", found=found, newest=FORMAT)
