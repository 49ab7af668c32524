"""Contract suite for model providers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import anyio
import pytest

from holdfast.agent.model import (
    AnswerCompleted,
    AnswerDiscarded,
    AnyAnswerDelta,
    ModelChoice,
    ModelRequest,
    PromptMessage,
    RetryScheduled,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Tokens,
    ToolCallDelta,
    UserMessage,
)
from holdfast.agent.ports import Models
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from holdfast.failures import Failure

Prepare = Callable[[Sequence[ScriptedAnswer]], AbstractAsyncContextManager[Models]]
"""Provides models with these answers, and without long delays between retries."""

CHOICE = ModelChoice("there", "some-model")
PROMPT = ModelRequest("Be brief.", (PromptMessage("m1", UserMessage("Hello")),))
READ = ScriptedCall("read", {"path": "a.py", "lines": [1, 2]}, "call_a")
RUN = ScriptedCall("run", {"command": "ls"}, "call_b")
WHOLE = ScriptedAnswer(think="Let me think.", say="I will look at it.\nNow.", calls=(READ, RUN))
SHORTEST = ScriptedAnswer(say="Ok.")


@dataclass(frozen=True, slots=True)
class ReceivedAnswer:
    """The deltas of one answer, without discarded ones."""

    pieces: list[AnyAnswerDelta]
    void: list[AnyAnswerDelta]

    @property
    def last(self) -> AnswerCompleted:
        """The complete answer."""
        assert isinstance(self.pieces[-1], AnswerCompleted), self.pieces
        return self.pieces[-1]

    @property
    def text(self) -> str:
        """The text of all deltas."""
        return "".join(each.text for each in self.pieces if isinstance(each, TextDelta))

    @property
    def thinking(self) -> str:
        """The thinking of all deltas."""
        return "".join(each.text for each in self.pieces if isinstance(each, ThinkingDelta))

    @property
    def calls(self) -> list[tuple[str, str]]:
        """(tool, arguments) of all call deltas."""
        told = [each for each in self.pieces if isinstance(each, ToolCallDelta)]
        return [
            (
                "".join(each.tool for each in told if each.index == index),
                "".join(each.text for each in told if each.index == index),
            )
            for index in sorted({each.index for each in told})
        ]


async def heard(
    models: Models, choice: ModelChoice = CHOICE, prompt: ModelRequest = PROMPT
) -> ReceivedAnswer:
    """Send a request, and collect all deltas."""
    found = ReceivedAnswer([], [])
    async with models.answering(choice, prompt) as batches:
        async for batch in batches:
            for piece in batch:
                if isinstance(piece, AnswerDiscarded):
                    found.void.extend(found.pieces)
                    found.pieces.clear()
                found.pieces.append(piece)
    return found


class ModelsContract:
    """What every provider guarantees; `prepare` returns one."""

    async def test_an_answer_comes_in_pieces_and_then_whole(self, prepare: Prepare) -> None:
        async with prepare([WHOLE]) as models:
            found = await heard(models)

        message = found.last.message
        assert (found.last.stop, found.last.tokens) == (StopReason.CALLS, WHOLE.tokens)
        assert (message.provider, message.model) == (CHOICE.provider, CHOICE.model)
        assert (found.text, found.thinking) == (WHOLE.say, WHOLE.think)
        assert (message.text, message.thinking[0].text) == (WHOLE.say, WHOLE.think)
        assert found.calls == [(call.tool, call.arguments) for call in message.calls]
        assert [(call.id, call.tool, call.arguments) for call in message.calls] == [
            (call.id, call.tool, call.written) for call in WHOLE.calls
        ]

    async def test_answers_come_one_after_the_other(self, prepare: Prepare) -> None:
        async with prepare([SHORTEST, WHOLE]) as models:
            texts = [(await heard(models)).text for _ in range(2)]

        assert texts == [SHORTEST.say, WHOLE.say]

    @pytest.mark.parametrize("stop", [StopReason.LENGTH, StopReason.REFUSED])
    async def test_why_it_stopped_is_told(self, prepare: Prepare, stop: StopReason) -> None:
        line = ScriptedAnswer(say="So far", stop=stop, tokens=Tokens(input=50, cached=20, output=7))
        async with prepare([line]) as models:
            found = await heard(models)

        assert (found.last.stop, found.last.tokens) == (stop, line.tokens)

    async def test_what_may_pass_is_tried_again(self, prepare: Prepare) -> None:
        async with prepare([ScriptedAnswer(fail="MODEL_OVERLOADED"), WHOLE]) as models:
            found = await heard(models)

        waiting = found.pieces[0]
        assert isinstance(waiting, RetryScheduled)
        assert (waiting.attempt, waiting.failure["code"]) == (2, "MODEL_OVERLOADED")
        assert (found.text, found.void) == (WHOLE.say, [])

    @pytest.mark.parametrize("code", ["MODEL_OVERLOADED", "MODEL_ANSWER_CUT"])
    async def test_part_of_an_answer_is_void(self, prepare: Prepare, code: str) -> None:
        async with prepare(
            [ScriptedAnswer(think="Hm.", say="I will lo", fail=code), WHOLE]
        ) as models:
            found = await heard(models)

        gone = found.pieces[0]
        assert isinstance(gone, AnswerDiscarded)
        assert gone.failure["code"] == code
        assert "".join(each.text for each in found.void if isinstance(each, TextDelta))
        assert (found.text, found.last.message.text) == (WHOLE.say, WHOLE.say)

    async def test_who_says_when_to_come_back_is_obeyed(self, prepare: Prepare) -> None:
        async with prepare(
            [ScriptedAnswer(fail="MODEL_RATE_LIMITED", retry_after=0.0), SHORTEST]
        ) as models:
            found = await heard(models)

        assert isinstance(found.pieces[0], RetryScheduled)
        assert found.pieces[0].seconds == 0.0

    async def test_who_wants_too_much_patience_is_not_waited_for(self, prepare: Prepare) -> None:
        async with prepare(
            [ScriptedAnswer(fail="MODEL_RATE_LIMITED", retry_after=3600.0)]
        ) as models:
            with pytest.raises(Failure) as raised:
                await heard(models)

        assert (raised.value.code, raised.value.retry_after) == ("MODEL_RATE_LIMITED", 3600.0)

    async def test_it_is_not_tried_for_ever(self, prepare: Prepare) -> None:
        async with prepare([ScriptedAnswer(fail="MODEL_OVERLOADED")] * 4) as models:
            with pytest.raises(Failure) as raised:
                await heard(models)

        assert raised.value.code == "MODEL_OVERLOADED"

    @pytest.mark.parametrize(
        "code",
        [
            "CONTEXT_TOO_LONG",
            "MODEL_CONTENT_REFUSED",
            "MODEL_KEY_REFUSED",
            "MODEL_QUOTA_EXHAUSTED",
            "MODEL_REQUEST_REFUSED",
            "MODEL_UNKNOWN",
        ],
    )
    async def test_what_does_not_pass_is_raised_at_once(self, prepare: Prepare, code: str) -> None:
        async with prepare([ScriptedAnswer(fail=code)]) as models:
            with pytest.raises(Failure) as raised:
                await heard(models)

        assert raised.value.code == code

    async def test_who_leaves_the_block_has_ended_it(self, prepare: Prepare) -> None:
        async with prepare([WHOLE, SHORTEST]) as models:
            async with models.answering(CHOICE, PROMPT) as batches:
                await anext(batches)
            found = await heard(models)

        assert found.text == SHORTEST.say

    async def test_several_can_be_asked_at_once(self, prepare: Prepare) -> None:
        texts: list[str] = []

        async def ask() -> None:
            texts.append((await heard(models)).text)

        async with prepare([SHORTEST] * 5) as models, anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)

        assert texts == [SHORTEST.say] * 5
