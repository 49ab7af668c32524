"""A person at a terminal, while what it stands on is killed."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator

import pytest

from tests.cli.conversations import hosts_of, in_conversation
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import READY, at, terminal_of

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_a_turn_is_asked_for_reviewed_and_published(bench: Bench) -> None:
    steps = '{say = "I write **b**."}, {write = "b", content = "two\\n"}, {say = "It is done."}'
    with at(bench, steps) as screen:
        screen.type("Write b\r")
        screen.sees("It is done.")
        screen.type("/diff\r")
        screen.sees("+two")
        screen.type("/publish\r")
        screen.sees("[y/N]")
        screen.type("y\r")
        screen.sees("Published 1 path")
        screen.shows(READY)
        screen.type("\x04")

        assert screen.ended() == 0
        assert "Resume with: holdfast --resume" in screen.scrolled
    assert bench.files() == {"a": "one\n", "b": "two\n"}


@pytest.mark.promise("A2")
@pytest.mark.promise("A7")
def test_who_types_on_while_the_host_dies_keeps_what_was_typed(bench: Bench) -> None:
    with at(bench, '{say = "I begin."}, {wait = 60}') as screen:
        screen.type("Begin\r")
        screen.sees("I begin.")
        screen.type("half of a thou")
        for host in hosts_of(bench):
            os.kill(host, signal.SIGKILL)
        screen.sees("The agent crashed and lost its current turn.")
        screen.sees("Press Enter to")
        screen.type("ght")

        screen.until(lambda: "> half of a thought" in screen.lines, "what was typed")
        screen.shows(READY)


def test_a_question_is_answered_by_a_key_and_never_by_what_was_being_typed(bench: Bench) -> None:
    with at(bench, '{wait = 2}, {ask = "May I?"}, {say = "I may."}') as screen:
        screen.type("Ask me\r")
        screen.type("something els")
        screen.sees("? May I?")
        screen.until(lambda: ">" in screen.lines, "an empty line")
        screen.type("²\r")
        screen.sees("The answers are: yes, no")
        screen.type("\x151")
        screen.sees("I may.")

        screen.until(lambda: "> something els" in screen.lines, "what was typed")


def test_the_terminal_is_put_back_after_a_kill(bench: Bench) -> None:
    with at(bench, '{say = "x"}') as screen:
        before = termios.tcgetattr(screen.master)
        child = terminal_of(screen)
        os.kill(child, signal.SIGKILL)

        assert screen.ended() == 128 + signal.SIGKILL
        assert before != termios.tcgetattr(screen.master)
        assert termios.tcgetattr(screen.master)[3] & termios.ICANON
        assert b"\x1b[?2004l" in screen.raw
        assert b"\x1b[?25h" in screen.raw


HOSTILE = (
    "\\u001b[2J\\u001b]0;owned\\u0007\\u001b]52;c;aGk=\\u0007\\u0090\\u009b31m"
    "a\\rb\\bc\\u202edcba\\u2066x\\U000E0041"
)


@pytest.mark.parametrize("sort", ["say", "think", "run", "ask"])
def test_nothing_from_outside_is_obeyed_by_the_terminal(bench: Bench, sort: str) -> None:
    value = f"echo '{HOSTILE}'" if sort == "run" else HOSTILE
    with at(bench, f'{{{sort} = "{value}"}}') as screen:
        clean = len(screen.raw)
        screen.type("Go\r")
        screen.sees("\\x1b[2J")
        screen.until(lambda: "owned" in screen.scrolled)

        said = screen.raw[clean:].replace(b"\x1b]0;holdfast", b"")
        for obeyed in (b"\x1b[2J", b"\x1b]0;", b"\x1b]52", b"\x90", b"\x9b31m", b"\x08c"):
            assert obeyed not in said.replace(b"\xc2", b"?"), obeyed
        assert "\u202e".encode() not in said
        assert "\U000e0041".encode() not in said
