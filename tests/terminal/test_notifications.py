"""A terminal is told its title and rung, and obeys nothing else of what is in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.terminal.notifications import Signals
from tests.parts.pty_screen import on_screen

pytestmark = pytest.mark.anyio

_PROGRAM = """
import sys
import anyio
from holdfast.terminal.notifications import Signals

async def main():
    signals = Signals(sys.argv[1:])
    await signals.call("not yet")
    signals.begin("a\\x1b]0;evil\\x07b")
    assert not await signals.call("needs you:\\n\\x07;" + "x" * 500)
    signals.end()
    signals.end()
    await signals.call("not any more")

anyio.run(main)
"""
_SAID = f"needs you: \\x07,{'x' * 63}…"


@pytest.mark.parametrize(
    ("ways", "expected"),
    [
        (["bell"], "\x07"),
        (["osc9"], f"\x1b]9;holdfast: {_SAID}\x07"),
        (["bell", "osc777"], f"\x07\x1b]777;notify;holdfast;{_SAID}\x07"),
        (["off"], ""),
    ],
)
def test_what_is_told_is_short_and_harmless(tmp_path: Path, ways: list[str], expected: str) -> None:
    argv = [sys.executable, "-c", _PROGRAM, *ways]
    with on_screen(argv, cwd=tmp_path, env=dict(os.environ)) as screen:
        assert screen.ended() == 0

        told = screen.raw.decode()
    title = "\x1b[22;0t\x1b]0;a\\x1b]0;evil\\x07b\x07"
    assert told == f"{title}{expected}\x1b[23;0t"


async def test_a_command_gets_what_there_is_to_say_as_one_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    told = tmp_path / "told"
    program = "import sys; open(sys.argv[1], 'a').write(repr(sys.argv[2:]))"
    signals = Signals(("command",), (sys.executable, "-c", program, str(told)))
    signals.begin("here")

    assert await signals.call("needs you: $(touch x) `id` ; 'a' \"b\" \x1b[2J") == ""
    assert told.read_text() == repr(["holdfast: needs you: $(touch x) `id` ; 'a' \"b\" \\x1b[2J"])
    assert "needs you" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (("/does/not/exist",), "could not be run: No such file"),
        ((sys.executable, "-c", "raise SystemExit(3)"), "ended with status 3"),
    ],
)
async def test_a_command_that_fails_is_told(argv: tuple[str, ...], problem: str) -> None:
    signals = Signals(("command",), argv)
    signals.begin("here")

    assert problem in await signals.call("done")


async def test_a_command_that_is_not_wanted_is_not_run() -> None:
    signals = Signals(("bell",), ("/does/not/exist",))
    signals.begin("here")

    assert await signals.call("done") == ""
