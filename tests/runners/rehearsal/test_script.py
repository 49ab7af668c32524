"""A script is read as it is meant, or refused with the place that makes no sense."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.runners.failures import ScenarioInvalid
from holdfast.runners.rehearsal.script import (
    STEPS,
    AskStep,
    EditStep,
    RunStep,
    SayStep,
    Scenario,
    ScriptedTurn,
    WriteStep,
    read_scenario,
)

TOML = """
about = "two turns"
[[turn]]
[[turn.step]]
say = "Hello"
[[turn.step]]
run = "make"
expect = 2
[[turn]]
[[turn.step]]
write = "a/b"
content = "x"
mode = 0o755
[[turn.step]]
edit = "a/b"
old = "x"
new = "y"
[[turn.step]]
ask = "Really?"
choices = ["go", "stop"]
"""
FIRST = ScriptedTurn((SayStep("Hello"), RunStep("make", expect=2)))
SECOND = ScriptedTurn(
    (WriteStep("a/b", "x", 0o755), EditStep("a/b", "x", "y"), AskStep("Really?", ("go", "stop")))
)


def test_toml_is_read() -> None:
    assert read_scenario("two", TOML) == Scenario("two", (FIRST, SECOND))


def test_json_is_read() -> None:
    text = json.dumps({"turn": [{"step": [{"say": "Hello"}, {"run": "make", "expect": 2}]}]})

    assert read_scenario("one", text) == Scenario("one", (FIRST,))


def test_the_last_turn_goes_on_for_ever() -> None:
    scenario = Scenario("two", (FIRST, SECOND))

    assert [scenario.turn(number) for number in range(4)] == [FIRST, SECOND, SECOND, SECOND]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there is no turn in it"),
        ("{}", "there is no turn in it"),
        ("1", "it cannot be read"),
        ("turn = 1", "there is no turn in it"),
        ("[[turn]]", "turn 1 has no steps"),
        ("[[turn]]\n[[turn.step]]\nsay = 1", "turn 1, step 1: Expected `str`"),
        ("[[turn]]\n[[turn.step]]\nsay = 'a'\nrun = 'b'", "turn 1, step 1 is not one of say"),
        ("[[turn]]\n[[turn.step]]\nsing = 'a'", "turn 1, step 1 is not one of say"),
        ("[[turn]]\n[[turn.step]]\nsay = 'a'\nloud = true", "turn 1, step 1: Object contains"),
        ("[[turn]]\n[[turn.step]]\nwait = -1", "turn 1, step 1: Expected `float` >= 0"),
        ("title = 1\n[[turn]]\n[[turn.step]]\nsay = 'a'", "there is no such thing as title"),
        ("{" * 100_000, "it cannot be read"),
    ],
)
def test_nonsense_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        read_scenario("odd", text)

    assert caught.value.problem.startswith(problem)


@given(st.recursive(st.none() | st.integers() | st.text(), st.lists) | st.text())
def test_anything_is_read_or_refused(value: object) -> None:
    step = {word: value for word in STEPS if word == "say"}
    for text in (json.dumps({"turn": [{"step": [step]}]}), str(value)):
        try:
            read_scenario("any", text)
        except ScenarioInvalid:
            continue
