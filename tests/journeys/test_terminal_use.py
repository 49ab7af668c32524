"""What a person does with a terminal: resize it, paste into it, share it, and leave it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.cli.conversations import in_conversation, lines, scripted, sessions
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import READY, at, cpu_seconds, terminal_of, typed

pytestmark = pytest.mark.timeout(300)

MARKDOWN = (
    "I write **b**, and a long sentence that has to be folded somewhere on the way to its end."
)
LINES = 100_000
CPU_MOST = 10.0  # seconds of a processor, for all of them, however busy the machine is


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_forty_columns_are_enough_and_a_window_may_change(bench: Bench) -> None:
    with at(bench, f'{{say = "{MARKDOWN}"}}, {{ask = "May I go on?"}}', size=(40, 20)) as screen:
        screen.type("Write\r")
        screen.sees("folded somewhere")
        screen.shows("1 yes")
        assert screen.raw.count(b"\x1b[?1049h") == 0, "the scrollback is the person's"
        screen.resize(100, 30)
        screen.shows("waiting · rehearsal · Ctrl-C ends the turn · draft")
        screen.type("1")
        screen.shows("idle")


def test_a_session_is_left_and_taken_up_again(bench: Bench) -> None:
    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.shows(READY)
        screen.type("/quit\r")
        assert screen.ended() == 0
        (name,) = re.findall(r"Resume with: holdfast --resume (\S+)", screen.scrolled)
    with typed(bench, "--continue") as again:
        again.sees("Answer 1.")
        again.shows(READY)
        with typed(bench, "--resume", name) as other:
            other.sees("Answer 1.")
            other.type("Begin again\r")
            other.sees("Answer 2.")
            again.sees("Answer 2.")
            again.shows(READY)
            again.type("And I\r")
            again.sees("Answer 3.")
            other.sees("Answer 3.")


def test_what_an_agent_cannot_do_is_said(bench: Bench) -> None:
    with at(bench, '{say = "Answer 1."}') as screen:
        for line, answer in [
            ("/model openai/x", "is chosen when a session begins"),
            ("/compact", "it cannot be told to"),
            ("/branch", "This agent cannot go back"),
            ("/agents", "The agent has no helpers."),
            ("/modle x", "Did you mean /model?"),
        ]:
            screen.type(f"{line}\r")
            screen.sees(answer)


def test_who_sits_at_a_session_that_is_ended_elsewhere_is_told(bench: Bench) -> None:
    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type("Begin\r")
        screen.sees("Answer 1.")
        screen.shows(READY)
        screen.type("half of a thought")
        ended = bench.ran("sessions", "end", sessions(bench)[0]["id"])
        assert ended.returncode == 0, ended.stderr
        screen.sees("The session was ended; the conversation is kept.")
        screen.shows("> half of a thought")
        screen.type("\x15/restart\r")
        screen.shows(READY)
        screen.type("Go on\r")
        screen.sees("Answer 2.")


@pytest.mark.parametrize("words", [(), ("--plain",)])
def test_who_wants_no_colour_gets_none(bench: Bench, words: tuple[str, ...]) -> None:
    script = scripted(bench, f'{{say = "{MARKDOWN}"}}, {{run = "echo x; exit 3"}}')
    with typed(bench, "--scenario", script, *words, NO_COLOR="1") as screen:
        if words:
            screen.sees("Type what is to be done;")
        else:
            screen.shows(READY)
        screen.type("Write\r")
        screen.sees("folded somewhere")
        screen.sees("echo x")

        assert not re.search(rb"\x1b\[[0-9;]*[34][0-9]m", screen.raw)
        assert not words or b"\x1b" not in screen.raw


def test_a_large_paste_arrives_as_it_is(bench: Bench) -> None:
    text = "".join(f"{number:09} of what was pasted\n" for number in range(36_000))
    assert len(text) > 1_000_000
    with at(bench, '{say = "Answer 1."}') as screen:
        screen.type(f"\x1b[200~{text}\x1b[201~")
        screen.shows("000035999 of what was pasted")
        screen.type("the end\r")
        screen.sees("Answer 1.")

    records = lines(bench.ran("sessions", "show", sessions(bench)[0]["id"], "--json").stdout)
    (prompted,) = [each["text"] for each in records if each.get("type") == "prompted"]
    assert prompted == f"{text}the end"


def test_much_output_costs_little(bench: Bench) -> None:
    with at(bench, f'{{run = "seq 1 {LINES}"}}, {{say = "Answer 1."}}') as screen:
        before = cpu_seconds(terminal_of(screen))
        screen.type("Count\r")
        screen.sees("Answer 1.")

        assert cpu_seconds(terminal_of(screen)) - before < CPU_MOST
        assert "more lines" in screen.scrolled
