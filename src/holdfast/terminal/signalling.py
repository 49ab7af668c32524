"""Call a person who may look elsewhere: the title of the window, a bell, a notification."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from holdfast.nouns import cut, printable

_OUT: Final = 1
_MOST: Final = 80


class Signals:
    """What a terminal can be told beside what it shows; before `begin` and after `end`, nothing."""

    def __init__(self) -> None:
        self._is_begun = False

    def begin(self, title: str) -> None:
        """Have the window show a title, and keep the one that it had."""
        self._is_begun = True
        _tell(f"\x1b[22;0t\x1b]0;{_clean(title)}\x07")

    def call(self, text: str) -> None:
        """Ring, and have a notification shown where terminals can do that."""
        if self._is_begun:
            _tell(f"\x07\x1b]9;holdfast: {_clean(text)}\x07")

    def end(self) -> None:
        """Put the title back."""
        if self._is_begun:
            self._is_begun = False
            _tell("\x1b[23;0t")


def _clean(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST, more="…")


def _tell(sequence: str) -> None:
    with suppress(OSError):  # nobody is there to be called
        os.write(_OUT, sequence.encode())
