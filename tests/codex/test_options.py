"""Options become parameters: what is given replaces, what is not leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.codex.failures import OptionInvalid
from holdfast.codex.options import (
    ThreadOptions,
    TurnOptions,
    thread_params,
    turn_params,
    user_input,
)
from holdfast.codex.wire.generated import (
    DangerFullAccessSandboxPolicy,
    ImageUserInput,
    ReadOnlySandboxPolicy,
    TextUserInput,
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
    TurnStartParams,
    WorkspaceWriteSandboxPolicy,
)
from holdfast.codex.wire.message import WireMessage

WORDS = st.none() | st.text(max_size=3)
GIVEN = {"cwd": WORDS, "approval_policy": WORDS, "sandbox": WORDS, "model": WORDS}
BASES = st.sampled_from(
    [
        ThreadStartParams(cwd="c", sandbox="s", model="m", ephemeral=True),
        ThreadResumeParams("t", approval_policy="a", personality="p"),
        ThreadForkParams("t", model="m", last_turn_id="u"),
    ]
)


@given(BASES, st.fixed_dictionaries({}, optional=GIVEN))
def test_only_what_is_given_replaces(
    base: ThreadStartParams | ThreadResumeParams | ThreadForkParams, options: ThreadOptions
) -> None:
    made: WireMessage
    match base:  # the type of the parameters stays what it is
        case ThreadStartParams():
            made = thread_params(base, options)
        case ThreadResumeParams():
            made = thread_params(base, options)
        case ThreadForkParams():
            made = thread_params(base, options)

    for name in base.__struct_fields__:
        given = options.get(name)
        assert getattr(made, name) == (getattr(base, name) if given is None else given)


def test_a_directory_may_be_a_path() -> None:
    assert thread_params(ThreadStartParams(), {"cwd": Path("/p")}).cwd == "/p"
    assert turn_params("t", "x", {"cwd": Path("/p")}).cwd == "/p"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, TurnStartParams("t", (TextUserInput("x"),))),
        (
            {"model": "m", "effort": "low", "summary": "auto", "approval_policy": "never"},
            TurnStartParams(
                "t",
                (TextUserInput("x"),),
                model="m",
                effort="low",
                summary="auto",
                approval_policy="never",
            ),
        ),
        (
            {"model": None, "more": TurnStartParams("?", (), model="m", personality="p")},
            TurnStartParams("t", (TextUserInput("x"),), model="m", personality="p"),
        ),
        (
            {"model": "n", "more": TurnStartParams("?", (), model="m")},
            TurnStartParams("t", (TextUserInput("x"),), model="n"),
        ),
        (
            {"output_schema": {"type": "object"}},
            TurnStartParams("t", (TextUserInput("x"),), output_schema={"type": "object"}),
        ),
    ],
)
def test_the_parameters_of_a_turn(options: TurnOptions, expected: TurnStartParams) -> None:
    assert turn_params("t", "x", options) == expected


@pytest.mark.parametrize(
    ("sandbox", "policy"),
    [
        ("read-only", ReadOnlySandboxPolicy()),
        ("workspace-write", WorkspaceWriteSandboxPolicy()),
        ("danger-full-access", DangerFullAccessSandboxPolicy()),
        (ReadOnlySandboxPolicy(network_access=True), ReadOnlySandboxPolicy(network_access=True)),
    ],
)
def test_a_sandbox_is_a_mode_or_a_policy(sandbox: str, policy: object) -> None:
    assert turn_params("t", "x", {"sandbox": sandbox}).sandbox_policy == policy


def test_an_unknown_mode_is_named_with_those_that_there_are() -> None:
    with pytest.raises(OptionInvalid) as raised:
        turn_params("t", "x", {"sandbox": "none"})

    assert "'none'" in raised.value.user_message
    assert "read-only, workspace-write, danger-full-access" in raised.value.user_message


def test_a_prompt_is_a_text_or_several_inputs() -> None:
    picture = ImageUserInput(url="https://x.test/p.png")

    assert user_input("x") == (TextUserInput("x"),)
    assert user_input([TextUserInput("x"), picture]) == (TextUserInput("x"), picture)
