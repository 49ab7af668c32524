"""A person who saves in the project and an agent who saves in a draft, each in a thread.

Whatever they save is new, so whatever stands anywhere tells who saved it. Contents are no text, so
that nobody can merge two of them.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

PATHS = [f"{top}/{name}" for top in ("one", "two", "two/deep") for name in ("a", "b", "c")]
PIECE = 900  # enough of them that one write is seen half done, if anybody looks


def content(who: str, number: int) -> bytes:
    """Bytes that nobody else has ever saved, the same all over."""
    return b"\0%s %06d;" % (who.encode(), number) * PIECE


@dataclass(slots=True)
class Editor:
    """Saves below a directory, again and again, until it is told to stop."""

    who: str
    root: Path
    chance: Random
    is_careful: bool = False  # saves only so that a file is there as a whole, and removes none
    saved: dict[str, set[bytes]] = field(default_factory=dict[str, set[bytes]])
    last: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    saves: int = 0
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Editor:
        self._thread = threading.Thread(target=self._work, name=self.who)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _work(self) -> None:
        while not self._stop.wait(self.chance.choice((0, 0.001, 0.01))):
            self.save(self.chance.choice(PATHS))

    def save(self, path: str) -> None:
        """Save once, in one of the ways in which people and tools do."""
        data = content(self.who, next(self._numbers))
        ways = (
            [self._save_over] if self.is_careful else [self._save_over, self._write, self._remove]
        )
        with suppress(FileNotFoundError, NotADirectoryError):
            self.chance.choices(ways, [5, 3, 1][: len(ways)])[0](path, data)
            self.saves += 1

    def _save_over(self, path: str, data: bytes) -> None:
        """As an editor does that is afraid of crashes."""
        self.saved.setdefault(path, set()).add(data)
        swap = self.root / f"{path}.{self.who}"
        swap.write_bytes(data)
        os.replace(swap, self.root / path)
        self.last[path] = data

    def _write(self, path: str, data: bytes) -> None:
        """As everybody else does: into the file that is there."""
        self.saved.setdefault(path, set()).update({data, b""})
        with (self.root / path).open("wb", buffering=0) as file:
            file.write(data)
            mine, there = os.fstat(file.fileno()), os.stat(self.root / path)
        # Who had a file open while it was replaced has written into the one that was there.
        self.last.pop(path, None)
        if (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino):
            self.last[path] = data

    def _remove(self, path: str, _: bytes) -> None:
        (self.root / path).unlink()
        self.last[path] = None
