"""A terminal is told its title and rung, and obeys nothing else of what is in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.parts.pty_screen import on_screen

_PROGRAM = """
from holdfast.terminal.signalling import Signals
signals = Signals()
signals.call("not yet")
signals.begin("a\\x1b]0;evil\\x07b")
signals.call("needs you:\\n\\x07" + "x" * 500)
signals.end()
signals.end()
"""


def test_what_is_told_is_short_and_harmless(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _PROGRAM]
    with on_screen(argv, cwd=tmp_path, env=dict(os.environ)) as screen:
        assert screen.ended() == 0

        told = screen.raw.decode()
    shown = "needs you: \\x07"
    assert told == (
        "\x1b[22;0t\x1b]0;a\\x1b]0;evil\\x07b\x07"
        f"\x07\x1b]9;holdfast: {shown}{'x' * (79 - len(shown))}…\x07"
        "\x1b[23;0t"
    )
