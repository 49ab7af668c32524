"""Write down what names paths of any bytes, and read it again."""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

Told = TypeVar("Told")


def spelled(told: object) -> bytes:
    """What is told, in JSON; a path that is no text is written as it is held in memory."""
    return json.dumps(msgspec.to_builtins(told)).encode("ascii")


def read_back(data: bytes, told: type[Told]) -> Told:
    """What was told, if it is of this type; raises ValueError if it is not."""
    return msgspec.convert(json.loads(data), told)
