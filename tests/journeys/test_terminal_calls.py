"""A person who looks elsewhere is called when the agent needs them, and when it is done."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.cli.conversations import in_conversation
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import READY, at
from tests.parts.pty_screen import PtyScreen

pytestmark = pytest.mark.timeout(180)

STEPS = '{ask = "May I; $(touch /evil)?"}, {say = "Answer 1."}'
NEEDED = "needs you: May I; $(touch /evil)?"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def settle(bench: Bench, text: str) -> None:
    bench.settings.config.mkdir(parents=True, exist_ok=True)
    (bench.settings.config / "config.toml").write_text(text)


def talk(screen: PtyScreen) -> None:
    """A turn in which the person is asked once."""
    screen.type("Begin\r")
    screen.sees("? May I;")
    screen.type("1")
    screen.sees("Answer 1.")
    screen.shows(READY)


def test_a_person_is_called_as_they_like_it(bench: Bench) -> None:
    told = bench.home / "told"
    program = bench.home / "call.py"
    program.write_text("import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')")
    settle(
        bench,
        f"""
notify = "osc777, command"
notify_command = "'{sys.executable}' '{program}' '{told}'"
""",
    )
    with at(bench, STEPS) as screen:
        talk(screen)
        screen.until(lambda: told.exists() and told.read_text().count("\n") == 2, "both calls")

        needed, done = NEEDED.replace(";", ",").encode(), b"done"
        calls = {f"holdfast: {NEEDED}", "holdfast: done"}  # two processes, in any order
        assert set(told.read_text().splitlines()) == calls
        for each in (needed, done):
            assert screen.raw.count(b"\x1b]777;notify;holdfast;" + each + b"\x07") == 1
        assert b"\x1b]9;" not in screen.raw


@pytest.mark.long
def test_who_wants_to_be_left_alone_is(bench: Bench) -> None:
    settle(bench, 'notify = "bell"\n')
    with at(bench, STEPS, "--notify", "off") as screen:
        talk(screen)
        screen.type("\x04")
        assert screen.ended() == 0

        title = screen.raw.count(b"\x1b]0;holdfast")
        assert (title, screen.raw.count(b"\x07")) == (1, 1), "only the title ends with a bell"


def test_nobody_else_says_which_command_is_run(bench: Bench) -> None:
    (bench.project / ".holdfast.toml").write_text('notify_command = "touch evil"\n')
    refused = bench.ran("trust", "--yes")
    assert refused.returncode == 78, refused.stdout
    (bench.project / ".holdfast.toml").unlink()
    settle(bench, 'notify = "command"\n')
    unsaid = bench.ran("chat", "--notify", "command")
    assert (unsaid.returncode, b"notify_command" in unsaid.stderr) == (78, True)
    assert not (bench.project / "evil").exists()
