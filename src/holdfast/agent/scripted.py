"""A provider that needs no key and no network: its model says what a script says."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio

from holdfast.agent.attempting import attempting
from holdfast.agent.core.script import Line, failure_of, message_of, places, read_script
from holdfast.agent.failures import ScriptEnded, ScriptInvalid
from holdfast.agent.model import (
    Answered,
    AnyPiece,
    CallPiece,
    Choice,
    ModelMessage,
    Prompt,
    Stop,
    TextPiece,
    ThinkingPiece,
    Tokens,
)
from holdfast.failures import RetryPolicy
from holdfast.world import Chance, SystemChance, disk_failure

PROVIDER = "scripted"


class ScriptedModels:
    """Plays a script, one line per request, whichever model is asked for.

    `asked` is what it was asked; a request that was made again stands there once. If it `follows`
    the conversation, it goes on from as many answers as that has already, also in another process.
    """

    def __init__(
        self,
        lines: Iterable[Line],
        *,
        window: int | None = None,
        follows: bool = False,
        policy: RetryPolicy | None = None,
        chance: Chance | None = None,
    ) -> None:
        self._lines = tuple(lines)
        self._window = window
        self._policy = policy or RetryPolicy()
        self._chance = chance or SystemChance()
        self._places = places(self._lines) if follows else (range(len(self._lines)),)
        self._follows = follows
        self._played: dict[int, int] = {}
        self.asked: list[tuple[Choice, Prompt]] = []

    def answering(
        self, choice: Choice, prompt: Prompt
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[AnyPiece]]]:
        """Play the next line, and one more for every try that failed."""
        self.asked.append((choice, prompt))
        answers = sum(isinstance(said.message, ModelMessage) for said in prompt.said)
        return self._answering(choice, answers if self._follows else 0)

    def window(self, choice: Choice) -> int | None:
        """As large as the script says."""
        del choice
        return self._window

    def price(self, choice: Choice, tokens: Tokens) -> float | None:
        """Nothing: nobody is paid."""
        del choice, tokens
        return 0.0

    @asynccontextmanager
    async def _answering(
        self, choice: Choice, place: int
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyPiece]]]:
        ask = partial(self._play, choice, place)
        async with aclosing(attempting(ask, policy=self._policy, chance=self._chance)) as pieces:
            yield pieces

    async def _play(self, choice: Choice, place: int) -> AsyncGenerator[Sequence[AnyPiece]]:
        line = self._next(place)
        await anyio.sleep(line.silence)
        message = message_of(line, choice, self._chance.draw(4).hex())
        for piece in _pieces(message):
            yield (piece,)
        if line.fail:
            raise failure_of(line, choice)
        stop = line.stop or (Stop.CALLS if message.calls else Stop.DONE)
        yield (Answered(message, stop, line.tokens),)

    def _next(self, place: int) -> Line:
        """The next line of this place; whoever follows a conversation says the last one again."""
        lines = self._places[place] if place < len(self._places) else range(0)
        played = self._played.get(place, 0)
        if not lines or (played >= len(lines) and not self._follows):
            raise ScriptEnded(answers=len(self._lines))
        self._played[place] = played + 1
        return self._lines[lines[min(played, len(lines) - 1)]]


def load_script(path: Path) -> ScriptedModels:
    """A provider that plays the script in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ScriptInvalid(name=path.name, problem="it is no text") from error
    script = read_script(path.name, text)
    return ScriptedModels(script.answer, window=script.window, follows=True)


def _pieces(message: ModelMessage) -> list[AnyPiece]:
    """What is told of a message while it is made: text in as many pieces as there are words."""
    pieces: list[AnyPiece] = [ThinkingPiece(each.text) for each in message.thinking]
    words = [word for line in message.text.splitlines(True) for word in _words(line)]
    pieces += map(TextPiece, words)
    for index, call in enumerate(message.calls):
        pieces += (CallPiece(index, call.tool, ""), CallPiece(index, "", call.arguments))
    return pieces


def _words(line: str) -> list[str]:
    head, *rest = line.split(" ")
    return [word for word in (head, *(f" {each}" for each in rest)) if word]
