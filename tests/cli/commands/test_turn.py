"""Whoever attends a turn is told of every death on the way, and of the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from subprocess import Popen

import pytest

from tests.cli.conversations import begun, hosts_of, in_conversation, lines, scripted, sessions
from tests.cli.pretending import on_terminal
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("A2")
def test_a_host_that_dies_is_told_and_replaced(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}, {wait = 600}', '{say = "Again"}')
    asked = begun(bench, "ask", "--scenario", script, "Wait")
    assert asked.stdout is not None
    assert asked.stdout.readline() == b"Hello\n"
    (host,) = hosts_of(bench)
    os.kill(host, signal.SIGKILL)
    _, err = asked.communicate(timeout=60)

    assert asked.returncode == 69, err
    assert "reconnecting…" in err.decode()
    assert b"The agent crashed and lost its current turn." in err
    name = err.decode().split("--session ")[1].split()[0]
    again = bench.ran("ask", "--session", name, "Go on")
    assert (again.returncode, again.stdout) == (0, b"Again\n"), again.stderr


def one_behind_another(bench: Bench) -> tuple[Popen[bytes], Popen[bytes]]:
    """Two who ask in one session: one whose turn does not end, and one who waits for that."""
    script = scripted(bench, '{say = "Hello"}, {wait = 600}')
    first = begun(bench, "ask", "--scenario", script, "Wait")
    assert first.stdout is not None
    assert first.stdout.readline() == b"Hello\n"
    [session] = sessions(bench)
    other = begun(bench, "ask", "--json", "--session", session["id"], "Then this")
    assert other.stdout is not None
    while b'"prompted"' not in other.stdout.readline():
        pass
    return first, other


@pytest.mark.promise("A11")
def test_what_waits_goes_with_the_turn_that_somebody_else_ends(bench: Bench) -> None:
    first, other = one_behind_another(bench)
    first.send_signal(signal.SIGINT)
    out, err = other.communicate(timeout=60)
    first.communicate(timeout=60)

    assert other.returncode == 130, err
    assert lines(out)[-1]["status"] == "interrupted"


@pytest.mark.promise("A11")
def test_who_takes_back_what_waits_ends_no_turn_of_somebody_else(bench: Bench) -> None:
    first, other = one_behind_another(bench)
    other.send_signal(signal.SIGINT)
    out, err = other.communicate(timeout=60)
    [stands] = sessions(bench)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)

    assert other.returncode == 130, err
    assert lines(out)[-1]["status"] == "interrupted"
    assert (stands["phase"], stands["turns"]) == ("running", 1)


def test_a_person_is_asked_and_answers(bench: Bench) -> None:
    script = scripted(bench, '{ask = "May I?", approval = true}, {say = "I may."}')
    words = ("ask", "-C", str(bench.project), "--scenario", script, "Ask me")
    with on_terminal(*words, home=bench.home) as screen:
        screen.expect("yes / no: ")
        screen.type("maybe\n")
        screen.type("yes\n")
        screen.expect("I may.\n")
        status, text = screen.end()

    assert status == 0
    assert "efused" not in text
