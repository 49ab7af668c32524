"""A draft as it is written down, in words that a person can read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from holdfast.nouns import Id, PathInvalid, RelativePath
from holdfast.workbench.model import Draft, Lack, Mode, Revision, Uncovered

PREFIX: Final = "draft"
VERSION: Final = 1


def encode_draft(draft: Draft) -> bytes:
    """The record of a draft; paths may hold any bytes, so that nothing but ASCII is used."""
    revisions = [
        {
            "number": each.number,
            "checkpoint": each.checkpoint,
            "at_ms": each.at_ms,
            "cause": each.cause,
            "base": each.base,
            "back_to": each.back_to,
        }
        for each in draft.revisions
    ]
    said: dict[str, object] = {
        "version": VERSION,
        "id": draft.id,
        "project": draft.project,
        "mode": draft.mode,
        "at_ms": draft.at_ms,
        "base": draft.base,
        "also": list(draft.also),
        "reason": draft.reason,
        "left_out": [[str(each.path), each.lack] for each in draft.left_out],
        "revisions": revisions,
    }
    return _written({**said, "check": _check(said)})


def decode_draft(raw: bytes) -> Draft:
    """The draft that a record tells of; raises ValueError with what is wrong with it."""
    try:
        said: Any = json.loads(raw)  # Any: it may be anything
        if said["version"] != VERSION:
            raise ValueError(f"its version is {said['version']}, and {VERSION} is known")
        if said.pop("check") != _check(said):
            raise ValueError("it is not what was written")
        return Draft(
            id=Id(_text(said["id"])),
            project=_text(said["project"]),
            mode=Mode(said["mode"]),
            at_ms=_number(said["at_ms"]),
            base=_id(said["base"]),
            also=tuple(map(_text, said["also"])),
            reason=_text(said["reason"]),
            left_out=tuple(
                Uncovered(RelativePath.from_text(_text(path)), Lack(lack))
                for path, lack in said["left_out"]
            ),
            revisions=tuple(map(_revision, said["revisions"])),
        )
    except (KeyError, TypeError, RecursionError, PathInvalid) as error:
        raise ValueError(f"it lacks something, or holds something else: {error}") from error


def _written(said: Mapping[str, object]) -> bytes:
    """The same, however it is written: the second way takes ten times as long."""
    with suppress(ValueError, OverflowError):  # a surrogate, or a number that nobody has
        data = msgspec.json.encode(said)
        if data.isascii() and b"\x7f" not in data:
            return msgspec.json.format(data, indent=1) + b"\n"
    return json.dumps(said, indent=1).encode("ascii") + b"\n"


def _check(said: Mapping[str, object]) -> str:
    return f"{zlib.crc32(_written(said)):08x}"


def _revision(said: Mapping[str, object]) -> Revision:
    return Revision(
        number=_number(said["number"]),
        checkpoint=Id(_text(said["checkpoint"])),
        at_ms=_number(said["at_ms"]),
        cause=_text(said["cause"]),
        base=_id(said["base"]),
        back_to=None if said["back_to"] is None else _number(said["back_to"]),
    )


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError(f"{said!r} is no text")
    return said


def _id(said: object) -> Id | None:
    return None if said is None else Id(_text(said))


def _number(said: object) -> int:
    if not isinstance(said, int) or isinstance(said, bool):
        raise TypeError(f"{said!r} is no number")
    return said
