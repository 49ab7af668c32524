"""Call a person who may look elsewhere: the title of the window, a bell, a notification."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import anyio

from holdfast.nouns import cut, printable

_OUT: Final = 1
_MOST: Final = 80
_LONGEST: Final = 30.0  # seconds that the person's own command may take
_SEQUENCES: Final = {
    "bell": "\x07",
    "osc9": "\x1b]9;holdfast: {}\x07",
    "osc777": "\x1b]777;notify;holdfast;{}\x07",
}


class Signals:
    """What a terminal can be told beside what it shows; before `begin` and after `end`, nothing."""

    def __init__(self, ways: Sequence[str], command: Sequence[str] = ()) -> None:
        """Call in these ways; one of them is a command, which is given what there is to say."""
        self._sequence = "".join(_SEQUENCES.get(way, "") for way in ways)
        self._command = tuple(command) if "command" in ways else ()
        self._is_begun = False

    def begin(self, title: str) -> None:
        """Have the window show a title, and keep the one that it had."""
        self._is_begun = True
        _tell(f"\x1b[22;0t\x1b]0;{_clean(title)}\x07")

    async def call(self, text: str) -> str:
        """Call the person; return what is wrong with the command that was to do it, if anything."""
        if not self._is_begun:
            return ""
        said = _clean(text)
        _tell(self._sequence.replace("{}", said.replace(";", ",")))
        return await _run((*self._command, f"holdfast: {said}")) if self._command else ""

    def end(self) -> None:
        """Put the title back."""
        if self._is_begun:
            self._is_begun = False
            _tell("\x1b[23;0t")


def _clean(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST, more="…")


def _tell(sequence: str) -> None:
    with suppress(OSError):  # the terminal is gone
        os.write(_OUT, sequence.encode())


async def _run(argv: Sequence[str]) -> str:
    """Run it away from the terminal, and without a shell: some of its words come from outside."""
    try:
        with anyio.fail_after(_LONGEST):
            ended = await anyio.run_process(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                start_new_session=True,
            )
    except TimeoutError:
        return f"notify_command took longer than {_LONGEST:g} s, and was ended"
    except OSError as error:
        return f"notify_command could not be run: {error.strerror or error}"
    return f"notify_command ended with status {ended.returncode}" if ended.returncode else ""
