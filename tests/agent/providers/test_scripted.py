"""A scripted model says what its script says (what all models promise is tested elsewhere)."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.agent.failures import ScriptEnded, ScriptInvalid
from holdfast.agent.model import (
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    Tokens,
    UserMessage,
)
from holdfast.agent.providers.scripted import (
    PROVIDER,
    ScriptedAnswer,
    ScriptedCall,
    ScriptedModels,
    load_script,
)
from holdfast.agent.testing import heard
from holdfast.world.failures import DiskMissing
from tests.agent.asked import AT_ONCE

pytestmark = pytest.mark.anyio

CHOICE = ModelChoice(PROVIDER, "any")
ASKED = PromptMessage("1", UserMessage("Hi."))
ANSWERED = PromptMessage("2", ModelMessage("One."))
FIRST, SECOND = (
    ModelRequest("S", (ASKED,)),
    ModelRequest("S", (ASKED, ANSWERED, PromptMessage("3", UserMessage("?")))),
)
LINES = (
    ScriptedAnswer(say="One."),
    ScriptedAnswer(fail="MODEL_OVERLOADED"),
    ScriptedAnswer(say="Two."),
)


async def said(models: ScriptedModels, prompt: ModelRequest) -> str:
    return (await heard(models, CHOICE, prompt)).text


async def test_it_remembers_what_it_was_asked() -> None:
    models = ScriptedModels(LINES, policy=AT_ONCE)

    assert [await said(models, FIRST), await said(models, FIRST)] == ["One.", "Two."]
    assert models.asked == [(CHOICE, FIRST), (CHOICE, FIRST)]


async def test_it_says_when_the_script_is_over() -> None:
    models = ScriptedModels(LINES[:1])
    await said(models, FIRST)

    with pytest.raises(ScriptEnded):
        await said(models, FIRST)


async def test_it_goes_on_where_the_conversation_stands() -> None:
    """Also in another process, also twice, and not beyond the end."""
    models = ScriptedModels(LINES, follows=True, policy=AT_ONCE)

    assert await said(models, SECOND) == "Two."
    assert [await said(models, FIRST), await said(models, SECOND)] == ["One.", "Two."]
    third = ModelRequest("S", (*SECOND.said, PromptMessage("4", ModelMessage("Two."))))
    with pytest.raises(ScriptEnded):
        await said(models, third)


async def test_calls_never_share_a_name() -> None:
    models = ScriptedModels([ScriptedAnswer(calls=(ScriptedCall("a"), ScriptedCall("a")))] * 2)
    found = [(await heard(models, CHOICE, FIRST)).last.message.calls for _ in range(2)]

    assert len({call.id for calls in found for call in calls}) == 4


async def test_a_file_is_played(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_text('window = 9\n[[answer]]\nsay = "Hi."\n')
    models = load_script(path)

    assert (await said(models, FIRST), models.window(CHOICE)) == ("Hi.", 9)
    assert models.price(CHOICE, Tokens(1, 2, 3)) == 0.0


def test_a_file_that_cannot_be_played_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiskMissing):
        load_script(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ScriptInvalid):
        load_script(tmp_path / "bad.toml")
