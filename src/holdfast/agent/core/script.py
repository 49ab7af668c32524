"""Read the script of a scripted model: what it answers, one request after the other.

A script is TOML or JSON. Each answer says what the model thinks, says and calls, in this order:

    [[answer]]
    say = "I will look at it."
    calls = [{ tool = "read", arguments = { path = "README.md" } }]

    [[answer]]
    fail = "MODEL_OVERLOADED"   # here this try breaks off, after what it has said

    [[answer]]
    say = "It is a readme."

A try that broke off is made again with the answer that follows it.
"""

from __future__ import annotations

import tomllib
from typing import Annotated

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
    ScriptInvalid,
)
from holdfast.agent.model import Call, Choice, ModelMessage, Stop, Thinking, Tokens
from holdfast.failures import Failure

Seconds = Annotated[float, msgspec.Meta(ge=0.0, le=86_400.0)]


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call; arguments that are a text are taken as they are, however malformed."""

    tool: str
    arguments: dict[str, object] | str = {}
    id: str = ""

    @property
    def written(self) -> str:
        """The arguments as the model would write them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What comes of one request: an answer, or as much of one as there is before it fails."""

    think: str = ""
    say: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    stop: Stop | None = None
    silence: Seconds = 0.0  # before anything
    fail: str = ""  # the code of a failure
    retry_after: Seconds | None = None  # that the failure asks for
    tokens: Tokens = Tokens(input=100, output=10)


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All answers, in order; and how large the model says that it is."""

    answer: tuple[Line, ...]
    window: int | None = None


def read_script(name: str, text: str) -> Script:
    """Read a script, or say what is wrong with it."""
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


def places(lines: tuple[Line, ...]) -> tuple[range, ...]:
    """Of every answer the lines that are tried for it, up to the one that succeeds."""
    ends = [at + 1 for at, line in enumerate(lines) if not line.fail or at + 1 == len(lines)]
    return tuple(range(start, end) for start, end in zip([0, *ends], ends, strict=False))


def message_of(line: Line, choice: Choice, mark: str) -> ModelMessage:
    """The message that a line stands for; unnamed calls are named with a mark."""
    calls = [
        Call(call.id or f"call_{mark}_{at}", call.tool, call.written)
        for at, call in enumerate(line.calls)
    ]
    return ModelMessage(
        text=line.say,
        thinking=(Thinking(line.think),) if line.think else (),
        calls=tuple(calls),
        provider=choice.provider,
        model=choice.model,
    )


def failure_of(line: Line, choice: Choice) -> Failure:
    """The failure that ends a line."""
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
