"""Keep which settings of which projects a person has looked at and agreed to.

Agreed to is what a file says, not its name: changed, it is not trusted any more.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

import msgspec

from holdfast.world import Clock, SystemDisk, make_private, replace_file

_DIRECTORY: Final = "trust"


class Trusted(msgspec.Struct, frozen=True):
    """That a file with this content, at this place, was agreed to."""

    file: str
    sha256: str
    at_ms: int


class Trust:
    """What one user trusts."""

    def __init__(self, state: Path) -> None:
        self._directory = state / _DIRECTORY

    def holds(self, file: Path, content: bytes) -> bool:
        """Whether this content of this file was agreed to, and nothing else since."""
        try:
            data = self._record(file).read_bytes()
            kept = msgspec.json.decode(data, type=Trusted)
        except (OSError, ValueError):  # it may not even be text
            return False
        return (kept.file, kept.sha256) == (str(file), _digest(content))

    def give(self, file: Path, content: bytes, clock: Clock) -> None:
        """Write down that this content was agreed to; it holds once this returns."""
        make_private(self._directory)
        given = Trusted(str(file), _digest(content), int(clock.now() * 1000))
        replace_file(SystemDisk(), self._record(file), [msgspec.json.encode(given)])

    def _record(self, file: Path) -> Path:
        return self._directory / f"{_digest(os.fsencode(file))[:32]}.json"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
