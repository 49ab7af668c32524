"""Be at a session again: all of it is shown, and what one types is done."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.conversations import asking, begun, in_conversation, scripted, sessions
from tests.cli.pretending import on_terminal
from tests.cli.running import COMMAND, environment
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_what_comes_in_is_a_prompt_and_its_answer_is_waited_for(bench: Bench) -> None:
    asking(bench, "First", steps='{say = "Hello"}')
    name = sessions(bench)[0]["id"]
    said = bench.ran("attach", name[-8:], stdin=b"Second\n\nThird")

    assert said.returncode == 0, said.stderr
    text = said.stdout.decode()
    prompts = [line for line in text.splitlines() if line.startswith("> ")]
    assert prompts == ["> First", "> Second", "> Third"]
    assert text.count("Hello\n") == 3
    assert bench.ran("attach", name).stdout == said.stdout


@pytest.mark.parametrize(
    ("source", "said"), [("<prompts", ["> First", "> Second"]), ("<&-", ["> First"])]
)
def test_what_comes_in_may_be_a_file_or_nothing_at_all(
    bench: Bench, source: str, said: list[str]
) -> None:
    asking(bench, "First", steps='{say = "Hello"}')
    name = sessions(bench)[0]["id"]
    (bench.home / "prompts").write_bytes(b"Second\n")
    line = f"{shlex.join([*COMMAND, 'attach', name])} {source}"
    ended = subprocess.run(
        ["sh", "-c", line],
        env=environment(bench.home),
        cwd=bench.home,
        capture_output=True,
        timeout=100,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    prompts = [each for each in ended.stdout.decode().splitlines() if each.startswith("> ")]
    assert prompts == said


def test_a_person_types_answers_interrupts_and_leaves(bench: Bench) -> None:
    script = scripted(
        bench,
        '{say = "Hello"}',
        '{ask = "May I?", approval = true}, {say = "I may."}',
        '{say = "Waiting."}, {wait = 600}',
    )
    bench.ran("ask", "--scenario", script, "First")
    name = sessions(bench)[0]["id"][-8:]
    with on_terminal("attach", name, home=bench.home) as screen:
        screen.expect("Hello\n")
        screen.expect("Ctrl-D leaves the session.")
        screen.type("Go on\n")
        screen.expect("answer: yes / no")
        screen.type("perhaps\n")
        screen.expect("perhaps is none of the answers")
        screen.type("yes\n")
        screen.expect("I may.\n")
        screen.type("And now\n")
        screen.expect("Waiting.\n")
        screen.type("\x03")
        screen.expect("(The turn was interrupted.)")
        screen.type("\x04")
        status, text = screen.end()

    assert status == 0
    assert text.count("Go on") == 1


def test_who_interrupts_twice_leaves_a_turn_that_does_not_end(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}', '{say = "Deaf."}, {hang = true}')
    bench.ran("ask", "--scenario", script, "First")
    name = sessions(bench)[0]["id"][-8:]
    with on_terminal("attach", name, home=bench.home) as screen:
        screen.expect("Ctrl-D leaves the session.")
        screen.type("Go on\n")
        screen.expect("Deaf.\n")
        screen.type("\x03")
        screen.expect("Ctrl-C again leaves at once.")
        screen.type("\x03")
        status, text = screen.end()

    assert status == 0
    assert "The turn continues." in text


def test_who_leaves_in_the_middle_can_come_back(bench: Bench) -> None:
    script = scripted(bench, '{say = "Hello"}, {wait = 600}')
    asked = begun(bench, "ask", "--scenario", script, "Wait")
    assert asked.stdout is not None
    asked.stdout.readline()
    name = sessions(bench)[0]["id"][-8:]
    with on_terminal("attach", name, home=bench.home) as screen:
        screen.expect("Ctrl-D leaves the session.")
        screen.type("\x04")
        status, text = screen.end()
    bench.ran("sessions", "end")
    asked.communicate(timeout=60)

    assert status == 0
    assert f"The turn continues. Attach with: holdfast attach {name}" in text
