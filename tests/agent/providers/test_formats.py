"""Whatever was said, all three formats take it; and it is written only once."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    ToolCall,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from holdfast.agent.providers.errors import PromptSize
from holdfast.agent.providers.formats import address, headers, reading, size_of, writer
from holdfast.agent.providers.registry import Format, Provider
from tests.parts.conversations import conversations
from tests.parts.provider_validators import validate

TOOLS = (
    ToolSpec("read", "Read.", {"type": "object", "properties": {"path": {"type": "string"}}}),
    ToolSpec("run", "Run.", {"type": "object", "properties": {}}),
)
CHOICE = ModelChoice("there", "some-model")
each_form = pytest.mark.parametrize("form", list(Format))
patiently = settings(
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
prompts = st.builds(
    ModelRequest,
    st.just("Be brief."),
    conversations("there"),
    st.sampled_from([(), TOOLS]),
    st.sampled_from([None, 100, 50_000]),
)
choices = st.builds(
    ModelChoice,
    st.just("there"),
    st.sampled_from(["some-model", "gpt-4o", "claude-haiku-4-5", "claude-opus-5"]),
    st.sampled_from(["", "minimal", "low", "high", "max"]),
)


def there(form: Format) -> Provider:
    return Provider("there", form, "https://there.example/v1", "THERE_API_KEY")


@pytest.mark.promise("A8")
@each_form
@patiently
@given(prompt=prompts, choice=choices)
def test_any_conversation_is_accepted(
    form: Format, prompt: ModelRequest, choice: ModelChoice
) -> None:
    validate(form, writer(there(form)).body(choice, prompt))


@pytest.mark.promise("A8")
@pytest.mark.long
@pytest.mark.timeout(600)
@each_form
@settings(patiently, max_examples=300)
@given(prompt=prompts, choice=choices)
def test_really_any_conversation_is_accepted(
    form: Format, prompt: ModelRequest, choice: ModelChoice
) -> None:
    validate(form, writer(there(form)).body(choice, prompt))


@each_form
@patiently
@given(steps=st.lists(st.tuples(conversations("there"), st.integers(0, 30)), max_size=3))
def test_what_was_written_before_changes_nothing(
    form: Format, steps: list[tuple[tuple[PromptMessage, ...], int]]
) -> None:
    """However conversations grow, branch and alternate, each is written as if it were the first."""
    practised = writer(there(form))
    for said, cut in steps:
        for part in (said[:cut], said, said[: cut // 2], said):
            prompt = ModelRequest("Be brief.", part, TOOLS)
            body = practised.body(CHOICE, prompt)
            assert body == writer(there(form)).body(CHOICE, prompt)


def long_talk(turns: int) -> tuple[PromptMessage, ...]:
    said = [PromptMessage("u", UserMessage("Go."))]
    for at in range(turns):
        call = ToolCall(f"call_{at}", "read", '{"path":"a.py"}')
        said.append(
            PromptMessage(f"m{at}", ModelMessage("Ok.", (), (call,), "there", "some-model"))
        )
        said.append(PromptMessage(f"t{at}", ToolMessage(call.id, "x" * 1000)))
    return tuple(said)


@each_form
def test_a_message_is_written_once(form: Format) -> None:
    """The next request of a long conversation costs a copy of its bytes, not all of its making."""
    said, practised = long_talk(2000), writer(there(form))

    def took(messages: tuple[PromptMessage, ...]) -> float:
        began = time.process_time()
        practised.body(CHOICE, ModelRequest("Be brief.", messages, TOOLS))
        return time.process_time() - began

    first = took(said[:-40])
    assert min(took(said[: len(said) - 40 + 2 * at]) for at in range(1, 20)) < first / 3


@each_form
def test_where_it_goes_and_with_what(form: Format) -> None:
    path = {
        Format.RESPONSES: "/responses",
        Format.CHAT: "/chat/completions",
        Format.MESSAGES: "/messages",
    }[form]

    assert address(there(form)) == f"https://there.example/v1{path}"
    assert "sk-there" in " ".join(headers(there(form), "sk-there").values())
    assert not {"authorization", "x-api-key"} & headers(there(form), None).keys()
    assert reading(there(form), CHOICE, "fresh").end() == []


def test_how_much_it_is() -> None:
    assert size_of(b"x" * 600, 1_000) == PromptSize(200, 1_000)
