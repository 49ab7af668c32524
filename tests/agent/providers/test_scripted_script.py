"""A script says what a model answers, and what is wrong with a script is said."""

from __future__ import annotations

import pytest

from holdfast.agent.failures import ModelStalled, RateLimited, ScriptInvalid
from holdfast.agent.model import ModelChoice, ModelMessage, StopReason, Thinking, ToolCall
from holdfast.agent.providers.scripted import (
    Script,
    ScriptedAnswer,
    ScriptedCall,
    failure_of,
    message_of,
    places,
    read_script,
)

CHOICE = ModelChoice("scripted", "any")
TOML = """
window = 1000

[[answer]]
think = "Hm."
say = "I look."
calls = [{ tool = "read", arguments = { path = "a" } }]

[[answer]]
fail = "MODEL_RATE_LIMITED"
retry_after = 2
"""
JSON = '{"answer": [{"say": "Hi.", "stop": "length"}]}'


def test_a_script_is_toml_or_json() -> None:
    assert read_script("a.toml", TOML) == Script(
        (
            ScriptedAnswer(
                think="Hm.", say="I look.", calls=(ScriptedCall("read", {"path": "a"}),)
            ),
            ScriptedAnswer(fail="MODEL_RATE_LIMITED", retry_after=2.0),
        ),
        window=1000,
    )
    assert read_script("a.json", JSON) == Script(
        (ScriptedAnswer(say="Hi.", stop=StopReason.LENGTH),)
    )


@pytest.mark.parametrize(
    "text",
    [
        "answer = 1",
        "[[answer]]\nshout = 'x'",
        "[[answer]]\nfail = 'NO_SUCH_CODE'",
        "[[answer]]\nsilence = -1",
        "{",
        "= =",
        "",
    ],
)
def test_what_makes_no_sense_is_said(text: str) -> None:
    with pytest.raises(ScriptInvalid):
        read_script("a.toml", text)


def test_a_line_is_a_message() -> None:
    line = ScriptedAnswer(
        think="Hm.", say="Hi.", calls=(ScriptedCall("a"), ScriptedCall("b", "{bad", "id"))
    )

    assert message_of(line, CHOICE, "m") == ModelMessage(
        "Hi.", (Thinking("Hm."),), (ToolCall("call_m_0", "a", "{}"), ToolCall("id", "b", "{bad")),
        "scripted", "any",
    )  # fmt: skip


def test_a_line_may_fail() -> None:
    stalled = failure_of(ScriptedAnswer(fail="MODEL_STALLED"), CHOICE)
    assert type(stalled) is ModelStalled
    limited = failure_of(ScriptedAnswer(fail="MODEL_RATE_LIMITED", retry_after=3.0), CHOICE)
    assert (type(limited), limited.retry_after) == (RateLimited, 3.0)


@pytest.mark.parametrize(
    ("fails", "expected"),
    [
        ("", []),
        (".", [range(1)]),
        ("x.", [range(2)]),
        (".xx.x", [range(0, 1), range(1, 4), range(4, 5)]),
    ],
)
def test_every_answer_has_its_tries(fails: str, expected: list[range]) -> None:
    lines = tuple(ScriptedAnswer(fail="MODEL_STALLED" if mark == "x" else "") for mark in fails)

    assert list(places(lines)) == expected
