"""Scripted provider: answers from a file, without key or network.

A script is TOML or JSON. Each answer lists what the model thinks, says and calls, in this order:

    [[answer]]
    say = "I will look at it."
    calls = [{ tool = "read", arguments = { path = "README.md" } }]

    [[answer]]
    fail = "MODEL_OVERLOADED"   # this attempt fails, after what it has said

    [[answer]]
    say = "It is a readme."

A failed attempt is retried with the answer that follows it.
"""

from __future__ import annotations

import tomllib
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import msgspec

from holdfast.agent.failures import (
    AnswerCut,
    AnswerGarbled,
    ContentRefused,
    ContextTooLong,
    KeyRefused,
    ModelOverloaded,
    ModelStalled,
    ModelUnknown,
    ModelUnreachable,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ScriptEnded,
    ScriptInvalid,
)
from holdfast.agent.model import (
    AnswerCompleted,
    AnyAnswerDelta,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    StopReason,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Tokens,
    ToolCall,
    ToolCallDelta,
)
from holdfast.agent.providers.retry import attempting
from holdfast.failures import Failure, RetryPolicy
from holdfast.world import RandomSource, SystemRandomSource, disk_failure

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=86_400.0)]


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; arguments given as a string are sent as they are, however malformed."""

    tool: str
    arguments: dict[str, object] | str = {}
    id: str = ""

    @property
    def written(self) -> str:
        """Return the arguments as JSON."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class ScriptedAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of one request: an answer, or a part of one before it fails."""

    think: str = ""
    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: StopReason | None = None
    silence: Seconds = 0.0  # before the first delta
    fail: str = ""  # failure code
    retry_after: Seconds | None = None  # seconds, as the provider would send it
    tokens: Tokens = Tokens(input=100, output=10)


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All answers in order, and the context window."""

    answer: tuple[ScriptedAnswer, ...]
    window: int | None = None


def read_script(name: str, text: str) -> Script:
    """Parse a script; raises ScriptInvalid."""
    try:
        if text.lstrip().startswith("{"):
            script = msgspec.json.decode(text, type=Script)
        else:
            script = msgspec.convert(tomllib.loads(text), Script)
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError) as error:
        raise ScriptInvalid(name=name, problem=str(error)) from error
    unknown = [line.fail for line in script.answer if line.fail and line.fail not in _FAILURES]
    if unknown:
        raise ScriptInvalid(name=name, problem=f"{unknown[0]} is no failure of a model")
    return script


def places(lines: tuple[ScriptedAnswer, ...]) -> tuple[range, ...]:
    """Return the range of attempts for every answer, up to the successful one."""
    ends = [at + 1 for at, line in enumerate(lines) if not line.fail or at + 1 == len(lines)]
    return tuple(range(start, end) for start, end in zip([0, *ends], ends, strict=False))


def message_of(line: ScriptedAnswer, choice: ModelChoice, mark: str) -> ModelMessage:
    """Return the message of an answer; `mark` is a prefix for missing call ids."""
    calls = [
        ToolCall(call.id or f"call_{mark}_{at}", call.tool, call.written)
        for at, call in enumerate(line.calls)
    ]
    return ModelMessage(
        text=line.say,
        thinking=(Thinking(line.think),) if line.think else (),
        calls=tuple(calls),
        provider=choice.provider,
        model=choice.model,
    )


def failure_of(line: ScriptedAnswer, choice: ModelChoice) -> Failure:
    """Return the failure that ends an attempt."""
    known = _FAILURES[line.fail]
    facts = {"provider": choice.provider, "model": choice.model, **_FACTS}
    failure = known(**{name: facts[name] for name in known.detail_names()})
    return failure if line.retry_after is None else failure.narrow(retry_after=line.retry_after)


_FACTS: dict[str, object] = {
    "status": 0,
    "param": "",
    "word": "scripted",
    "reason": "scripted",
    "problem": "scripted",
    "said": "scripted",
    "stage": "scripted",
    "seconds": 0.0,
}
_FAILURES: dict[str, type[Failure]] = {
    known.code: known
    for known in (
        AnswerCut,
        AnswerGarbled,
        ContentRefused,
        ContextTooLong,
        KeyRefused,
        ModelOverloaded,
        ModelStalled,
        ModelUnknown,
        ModelUnreachable,
        QuotaExhausted,
        RateLimited,
        RequestRefused,
    )
}


PROVIDER = "scripted"


class ScriptedModels:
    """Plays a script, one answer per request, for any model.

    `asked` contains the requests, without retries. With `follows`, the position is the number of
    answers in the conversation, so that another process can continue.
    """

    def __init__(
        self,
        lines: Iterable[ScriptedAnswer],
        *,
        window: int | None = None,
        follows: bool = False,
        policy: RetryPolicy | None = None,
        chance: RandomSource | None = None,
    ) -> None:
        self._lines = tuple(lines)
        self._window = window
        self._policy = policy or RetryPolicy()
        self._chance = chance or SystemRandomSource()
        self._places = places(self._lines) if follows else (range(len(self._lines)),)
        self._follows = follows
        self._played: dict[int, int] = {}
        self.asked: list[tuple[ModelChoice, ModelRequest]] = []

    def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        """Play the next answer, and another one for every failed attempt."""
        self.asked.append((choice, prompt))
        answers = sum(isinstance(said.message, ModelMessage) for said in prompt.said)
        return self._answering(choice, answers if self._follows else 0)

    def window(self, choice: ModelChoice) -> int | None:
        del choice
        return self._window

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        """Return None: there is no price."""
        del choice, tokens
        return 0.0

    @asynccontextmanager
    async def _answering(
        self, choice: ModelChoice, place: int
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        ask = partial(self._play, choice, place)
        async with aclosing(attempting(ask, policy=self._policy, chance=self._chance)) as pieces:
            yield pieces

    async def _play(
        self, choice: ModelChoice, place: int
    ) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
        line = self._next(place)
        await anyio.sleep(line.silence)
        message = message_of(line, choice, self._chance.draw(4).hex())
        for piece in _pieces(message):
            yield (piece,)
        if line.fail:
            raise failure_of(line, choice)
        stop = line.stop or (StopReason.CALLS if message.calls else StopReason.DONE)
        yield (AnswerCompleted(message, stop, line.tokens),)

    def _next(self, place: int) -> ScriptedAnswer:
        """Return the next answer; with `follows`, the last one is repeated."""
        lines = self._places[place] if place < len(self._places) else range(0)
        played = self._played.get(place, 0)
        if not lines or (played >= len(lines) and not self._follows):
            raise ScriptEnded(answers=len(self._lines))
        self._played[place] = played + 1
        return self._lines[lines[min(played, len(lines) - 1)]]


def load_script(path: Path) -> ScriptedModels:
    """Load a script from a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ScriptInvalid(name=path.name, problem="it is no text") from error
    script = read_script(path.name, text)
    return ScriptedModels(script.answer, window=script.window, follows=True)


def _pieces(message: ModelMessage) -> list[AnyAnswerDelta]:
    """Return the deltas of a message; text is split into words."""
    pieces: list[AnyAnswerDelta] = [ThinkingDelta(each.text) for each in message.thinking]
    words = [word for line in message.text.splitlines(True) for word in _words(line)]
    pieces += map(TextDelta, words)
    for index, call in enumerate(message.calls):
        pieces += (ToolCallDelta(index, call.tool, ""), ToolCallDelta(index, "", call.arguments))
    return pieces


def _words(line: str) -> list[str]:
    head, *rest = line.split(" ")
    return [word for word in (head, *(f" {each}" for each in rest)) if word]
