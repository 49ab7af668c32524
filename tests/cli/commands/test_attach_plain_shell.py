"""Slash commands work where there are only lines, and no escape sequence is ever written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.runners.failures import Rehearsed
from tests.cli.conversations import in_conversation, scripted, sessions
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench
from tests.parts.pty_screen import on_screen

STEPS = ('{write = "b", content = "two\\n"}, {say = "Written."}', '{say = "Again."}')


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("S5", "A7")
@pytest.mark.parametrize(("words", "term"), [(("--plain",), "xterm"), ((), "dumb")])
def test_commands_work_and_nothing_is_escaped(
    bench: Bench, words: tuple[str, ...], term: str
) -> None:
    script = scripted(bench, *STEPS)
    argv = [*COMMAND, "--scenario", script, *words, "Write b"]
    env = environment(bench.home, TERM=term)
    with on_screen(argv, cwd=bench.project, env=env, size=(100, 60)) as screen:
        screen.sees("Written.")
        screen.type("/diff\n")
        screen.sees("+two")
        screen.type("/help\n")
        screen.sees("bring the draft into the project")
        screen.type("/cost\n")
        screen.sees("Nothing was asked of a model yet")
        screen.type("/nonsense\n")
        screen.sees("There is no /nonsense.")
        screen.type("/retry\n")
        screen.sees("Again.")
        screen.type("//etc is a path\n")
        screen.until(lambda: screen.scrolled.count("Again.") == 2, "a second answer")
        screen.type("/publish\n")
        screen.sees("Publish this?")
        screen.type("y\n")
        screen.until(lambda: (bench.project / "b").exists(), "published")
        screen.type("/quit\n")
        assert screen.ended() == 0
        assert b"\x1b" not in screen.raw
    (made,) = sessions(bench)
    assert made["turns"] == 3
    assert b"> /etc is a path" in bench.ran("sessions", "show").stdout


def test_a_command_on_a_pipe_does_not_take_the_lines_after_it(bench: Bench) -> None:
    script = scripted(bench, *STEPS)
    done = bench.ran("chat", "--scenario", script, stdin=b"First\n/diff\n/status\nSecond\n/quit\n")

    assert done.returncode == 0, done.stderr
    said = done.stdout.decode()
    assert [line for line in said.splitlines() if line.startswith("> ")] == ["> First", "> Second"]
    assert "/status" not in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("Go.",), b""),
        ((), b"Go."),
        ((), b"Go.\nAgain.\n"),  # a turn that completes afterwards does not hide the failed one
    ],
)
def test_on_a_pipe_the_status_says_that_a_turn_failed(
    bench: Bench, words: tuple[str, ...], stdin: bytes
) -> None:
    script = scripted(bench, '{fail = "It broke."}', '{say = "Again."}')
    done = bench.ran("chat", "--scenario", script, *words, stdin=stdin)

    asked = bench.ran("ask", "--scenario", script, "Go.")
    assert (done.returncode, b"It broke." in done.stdout) == (Rehearsed.kind.exit_status, True)
    assert done.returncode == asked.returncode != 0
