"""Notify the user: window title, bell, OSC 9 and OSC 777 notifications, a command."""

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
    """Escape sequences beside the text; none are written before `begin` and after `end`."""

    def __init__(self, ways: Sequence[str], command: Sequence[str] = ()) -> None:
        """`ways` are the kinds of notification; `command` gets the text as its last argument."""
        self._sequence = "".join(_SEQUENCES.get(way, "") for way in ways)
        self._command = tuple(command) if "command" in ways else ()
        self._is_begun = False

    def begin(self, title: str) -> None:
        """Set the window title; the first call pushes the previous one on the terminal's stack."""
        self._is_begun = True
        _tell(f"\x1b[22;0t\x1b]0;{_clean(title)}\x07")

    async def call(self, text: str) -> str:
        """Notify the user; return the error of the notify command, if there is one."""
        if not self._is_begun:
            return ""
        said = _clean(text)
        _tell(self._sequence.replace("{}", said.replace(";", ",")))
        return await _run((*self._command, f"holdfast: {said}")) if self._command else ""

    def end(self) -> None:
        """Restore the window title."""
        if self._is_begun:
            self._is_begun = False
            _tell("\x1b[23;0t")


def _clean(text: str) -> str:
    return cut(printable(" ".join(text.split())), _MOST, more="…")


def _tell(sequence: str) -> None:
    with suppress(OSError):  # the terminal is gone
        os.write(_OUT, sequence.encode())


async def _run(argv: Sequence[str]) -> str:
    """Run the command detached from the terminal and without a shell: its text is untrusted."""
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
