"""Whatever is killed or stopped behind a terminal, a person goes on and keeps what they typed."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cli.conversations import hosts_of, in_conversation, sessions
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import READY, at, servers_of, terminal_of, typed
from tests.parts.pty_screen import PtyScreen

pytestmark = pytest.mark.timeout(300)

STATES = {
    "idle": ('{say = "Answer 1."}', "Answer 1.", READY),
    "streaming": ('{say = "I begin."}, {wait = 600}', "I begin.", "running · rehearsal"),
    "asking": ('{ask = "May I?"}, {say = "Thanks."}', "? May I?", "waiting · rehearsal"),
}
EVERY = [
    pytest.param(who, state, marks=() if is_quick else pytest.mark.long)
    for who, state, is_quick in [
        ("terminal", "asking", True),
        ("host", "idle", True),
        ("server", "streaming", True),
        ("terminal", "idle", False),
        ("terminal", "streaming", False),
        ("host", "streaming", False),
        ("host", "asking", False),
        ("server", "idle", False),
        ("server", "asking", False),
    ]
]


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("A2", "A7")
@pytest.mark.parametrize(("who", "state"), EVERY)
def test_a_person_goes_on_after_any_kill_in_any_state(bench: Bench, who: str, state: str) -> None:
    steps, seen, status = STATES[state]
    with at(bench, steps) as screen:
        screen.type("Begin\r")
        screen.sees(seen)
        screen.shows(status)
        screen.type("half of a thought")
        screen.shows("> half of a thought")
        if who == "terminal":
            _kill_terminal(screen)
        else:
            (process,) = hosts_of(bench) if who == "host" else servers_of(bench)
            os.kill(process, signal.SIGKILL)
            _go_on(screen, is_lost=who == "host" and state != "idle", is_idle=state == "idle")
    if who == "terminal":
        with typed(bench, "--resume", sessions(bench)[0]["id"]) as again:
            again.sees("> Begin")
            again.shows(status)


def _kill_terminal(screen: PtyScreen) -> None:
    os.kill(terminal_of(screen), signal.SIGKILL)

    assert screen.ended() == 128 + signal.SIGKILL
    assert termios.tcgetattr(screen.master)[3] & termios.ICANON
    assert b"\x1b[?2004l" in screen.raw.rpartition(b"half of")[2]


def _go_on(screen: PtyScreen, *, is_lost: bool, is_idle: bool) -> None:
    """What runs outlives the server that started it; what a host did, it did not."""
    if is_lost:
        screen.sees("The agent crashed and lost its current turn.")
    screen.shows("> half of a thought")
    screen.type("\x15")
    if not (is_lost or is_idle):
        screen.type("\x03")
    screen.shows(READY)
    screen.type("Go on\r")
    screen.sees("Answer 2.")


@pytest.mark.long
@pytest.mark.promise("A4")
def test_a_host_that_hangs_is_named_and_restarted(bench: Bench) -> None:
    with at(bench, '{say = "I begin."}, {wait = 600}') as screen:
        screen.type("Begin\r")
        screen.sees("I begin.")
        for host in hosts_of(bench):
            os.kill(host, signal.SIGSTOP)
        screen.shows("backend unresponsive — restart?")
        screen.type("/restart\r")
        screen.sees("The agent crashed and lost its current turn.")
        screen.shows(READY)
        assert "backend unresponsive" not in "\n".join(screen.lines)
        screen.type("Go on\r")
        screen.sees("Answer 2.")


@pytest.mark.long
@pytest.mark.promise("A7")
def test_a_host_that_is_killed_whenever_it_comes_is_given_up_and_restarted(bench: Bench) -> None:
    """Most of these are killed before they listen."""
    killed: set[int] = set()

    def is_given_up() -> bool:
        for host in {*hosts_of(bench)} - killed:
            killed.add(host)
            with suppress(ProcessLookupError):
                os.kill(host, signal.SIGKILL)
        return "→ Restart it (Enter)" in screen.scrolled

    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.shows(READY)
        screen.type("half of a thought")
        screen.until(is_given_up, "the offer")
        assert len(killed) >= 4
        screen.until(lambda: "reconnecting…" not in screen.lines, "no more hope")
        screen.shows("> half of a thought")
        screen.type("\x15\r")
        screen.shows(READY)
        screen.type("Go on\r")
        screen.sees("Answer 2.")


@pytest.mark.promise("A7")
def test_a_prompt_to_a_backend_that_keeps_dying_is_kept_or_sent_again(bench: Bench) -> None:
    killed: set[int] = set()

    def kill_all() -> None:
        for host in {*hosts_of(bench)} - killed:
            killed.add(host)
            with suppress(ProcessLookupError):
                os.kill(host, signal.SIGKILL)

    def is_given_up(times: int) -> bool:
        kill_all()
        return screen.scrolled.count("→ Restart it (Enter)") >= times

    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.until(lambda: is_given_up(1), "the offer")
        screen.type("Go on\r")  # restarts it, and it dies again
        screen.until(lambda: is_given_up(2), "the offer, again")
        screen.shows("> Go on")
        screen.type("\r")
        screen.sees("Answer 2.")


@pytest.mark.promise("A7")
def test_ctrl_c_in_a_turn_keeps_the_half_typed_line(bench: Bench) -> None:
    with at(bench, '{say = "I begin."}, {wait = 600}') as screen:
        screen.type("Begin\r")
        screen.sees("I begin.")
        screen.type("half of a thought")
        screen.shows("> half of a thought")
        screen.type("\x03")
        screen.sees("The turn was interrupted")
        screen.shows(READY)
        screen.shows("> half of a thought")
        screen.type("\x03")  # nothing runs: now it clears the line, and Up has it back
        screen.until(lambda: "> half of a thought" not in screen.lines, "an empty line")
        screen.type("\x1b[A")
        screen.shows("> half of a thought")
