"""In-memory runner, whose turns are lists of events."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio

from holdfast.failures import Failure
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import (
    AnyEvent,
    MemoryRecorded,
    QuestionAsked,
    RunnerCapabilities,
    RunnerHealth,
    SessionKnown,
    TurnEnded,
    TurnEnding,
)
from holdfast.runners.ports import AS_EVER, ReadMemory

EventScript = Sequence[Sequence[AnyEvent | float | Failure]]
"""Events per turn; a number is a pause in seconds, a failure ends the conversation."""


class MemoryRunner:
    """Emits the given events; a question waits for its answer."""

    name = "puppet"
    capabilities = RunnerCapabilities(
        continues=True, asks=True, is_offline=True, options=("model", "effort")
    )
    options = capabilities.options

    def __init__(self, script: EventScript) -> None:
        self.script = script
        self.heard: list[str] = []  # prompts and steering
        self.how: list[dict[str, str]] = []  # options of each turn
        self.remembered: list[MemoryRecorded] = []  # records at the start of the last conversation
        self.answers: dict[str, str] = {}
        self.begun = 0
        self.conversations = 0
        self.forgets = False  # conversations, when they end
        self._changed = anyio.Event()
        self._is_interrupted = False

    async def health(self) -> RunnerHealth:
        return RunnerHealth(True)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[MemoryRunner]:
        """Continue with the turn after the last one."""
        if session is not None and self.forgets:
            raise SessionUnknown(runner=self.name, session=session)
        self.remembered = list(memory())
        self.begun = 0 if session is None else int(session)
        self.conversations += 1
        yield self

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Emit the events of the next turn one by one."""
        self.heard.append(prompt)
        self.how.append(dict(how))
        turn = self.script[min(self.begun, len(self.script) - 1)]
        self.begun += 1
        self._is_interrupted = False
        yield (SessionKnown(str(self.begun)),)
        for each in turn:
            if isinstance(each, Failure):
                raise each
            if isinstance(each, int | float):
                await self._wait(lambda: False, longest=each)
            else:
                yield (each,)
            if isinstance(each, QuestionAsked):
                await self._wait(partial(self.answers.__contains__, each.question))
            if self._is_interrupted:
                yield (TurnEnded(TurnEnding.INTERRUPTED),)
                return
        yield (TurnEnded(TurnEnding.COMPLETED),)

    async def steer(self, text: str) -> bool:
        """Record the text, and ignore it."""
        self.heard.append(text)
        return True

    async def answer(self, question: str, answer: str) -> bool:
        """Accept the first answer to each question."""
        is_first = question not in self.answers
        self.answers.setdefault(question, answer)
        self._notify()
        return is_first

    async def interrupt(self) -> None:
        """End the turn at once."""
        self._is_interrupted = True
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _wait(self, holds: Callable[[], bool], *, longest: float = math.inf) -> None:
        with anyio.move_on_after(longest):
            while not holds() and not self._is_interrupted:
                await self._changed.wait()
