"""Tell a person how far something long has come, on a line that goes away again."""

from __future__ import annotations

import sys
import time
from typing import Final

from holdfast.cli.output import complain, is_terminal
from holdfast.nouns import printable
from holdfast.workbench.model import Progress

_UNTOLD: Final = 1.0  # seconds: most things are done by then
_OFTEN: Final = 0.1
_SELDOM: Final = 10.0  # seconds between two lines where none can be taken back
_ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """Takes news of progress, and shows it if it takes long; a program is told nothing."""

    def __init__(self, *, is_wanted: bool, untold: float = _UNTOLD) -> None:
        """Begin now; what comes within `untold` seconds is not worth telling."""
        self._is_wanted = is_wanted
        self._can_erase = is_terminal(sys.stderr)
        self._next = time.monotonic() + untold
        self._is_shown = False

    def __call__(self, progress: Progress) -> None:
        """Show the news, unless it is too early to."""
        now = time.monotonic()
        if not self._is_wanted or now < self._next:
            return
        line = progress_text(progress)
        if self._can_erase:
            self._next, self._is_shown = now + _OFTEN, True
            complain(f"{_ERASE}  {line}")
        else:
            self._next = now + _SELDOM
            complain(f"({line})\n")

    def clear(self) -> None:
        """Take the line away before anything else is written."""
        if self._is_shown:
            self._is_shown = False
            complain(_ERASE)


def progress_text(progress: Progress) -> str:
    """How far it has come, in words."""
    of = "" if progress.of is None else f" of {progress.of:,}"
    return f"{printable(progress.what)}: {progress.done:,}{of}"
