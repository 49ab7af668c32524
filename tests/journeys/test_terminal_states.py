"""Rarer moments in which something dies or hangs behind a terminal; what was typed is kept."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.cli.conversations import hosts_of, in_conversation, sessions
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import READY, at, servers_of, terminal_of, typed

pytestmark = [pytest.mark.timeout(300), pytest.mark.long, pytest.mark.promise("A7")]

BUSY = '{say = "I begin."}, {wait = 600}'
TYPED = "> half of a thought"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_host_and_server_die_at_once(bench: Bench) -> None:
    with at(bench, BUSY) as screen:
        screen.type("Begin\r")
        screen.sees("I begin.")
        screen.type("half of a thought")
        screen.shows(TYPED)
        for each in (*servers_of(bench), *hosts_of(bench)):
            os.kill(each, signal.SIGKILL)
        screen.sees("The agent crashed and lost its current turn.")
        screen.shows(TYPED)
        screen.type("\x15")
        screen.shows(READY)
        screen.type("Go on\r")
        screen.sees("Answer 2.")


def test_the_host_dies_while_a_command_asks(bench: Bench) -> None:
    with at(bench, '{write = "b", content = "two\\n"}, {say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.shows(READY)
        screen.type("/publish\r")
        screen.sees("[y/N]")
        for each in hosts_of(bench):
            os.kill(each, signal.SIGKILL)
        screen.type("y\r")
        screen.sees("Published 1 path")
        screen.shows(READY)
        screen.type("Go on\r")
        screen.sees("Answer 2.")
    assert bench.files() == {"a": "one\n", "b": "two\n"}


@pytest.mark.promise("A5")
def test_one_may_type_on_while_the_host_hangs_and_it_may_come_back(bench: Bench) -> None:
    with at(bench, BUSY) as screen:
        screen.type("Begin\r")
        screen.sees("I begin.")
        screen.type("half of a tho")
        (host,) = hosts_of(bench)
        os.kill(host, signal.SIGSTOP)
        screen.shows("backend unresponsive — restart?")
        screen.type("ught")
        screen.shows(TYPED)
        os.kill(host, signal.SIGCONT)
        screen.until(lambda: "backend unresponsive" not in "\n".join(screen.lines), "its return")
        screen.shows(TYPED)
        screen.type("\x15\x03")
        screen.shows(READY)
        screen.type("Go on\r")
        screen.sees("Answer 2.")


def test_who_is_left_of_two_answers(bench: Bench) -> None:
    with at(bench, '{ask = "May I?"}, {say = "Answer 1."}') as one:
        one.type("Begin\r")
        one.sees("? May I?")
        with typed(bench, "--resume", sessions(bench)[0]["id"]) as other:
            other.shows("1 yes")
            os.kill(terminal_of(one), signal.SIGKILL)
            assert one.ended() == 128 + signal.SIGKILL
            other.type("1")
            other.sees("Answer 1.")


def test_the_host_dies_in_the_middle_of_a_paste(bench: Bench) -> None:
    text = "".join(f"{number:09} of what was pasted\n" for number in range(36_000))
    half = len(text) // 2
    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.shows(READY)
        screen.type(f"\x1b[200~{text[:half]}")
        for each in hosts_of(bench):
            os.kill(each, signal.SIGKILL)
        screen.type(f"{text[half:]}\x1b[201~")
        screen.shows("000035999 of what was pasted")
        screen.type("the end\r")
        screen.sees("Answer 2.")
