"""Rehearsal runner: a scripted agent that needs no key and no network."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
import msgspec

from holdfast.exec import ProcessTransport
from holdfast.failures import Failure, to_wire
from holdfast.rpc import Connection
from holdfast.rpc.model import Notification
from holdfast.runners.environment import RunnerEnvironment
from holdfast.runners.failures import RunnerEnded, ScenarioInvalid, SessionUnknown
from holdfast.runners.model import AnyEvent, RunnerCapabilities, RunnerHealth, TurnEnded, TurnEnding
from holdfast.runners.ports import AS_EVER, ReadMemory
from holdfast.runners.rehearsal.process import (
    ANSWER,
    EVENTS,
    INTERRUPT,
    TURN,
    AnswerParams,
    TurnAccepted,
    TurnParams,
)
from holdfast.runners.rehearsal.script import read_scenario
from holdfast.world import disk_failure

NAME = "rehearsal"
DEMO = Path(__file__).parent / "scenarios" / "demo.toml"
_ANSWER_LONGEST = 60.0  # seconds, including the start of the process
_END_LONGEST = 5.0

_events = msgspec.json.Decoder(tuple[AnyEvent, ...])


class Rehearsal:
    """The scripted runner; its scenario is a file."""

    name = NAME
    capabilities = RunnerCapabilities(continues=True, asks=True, is_offline=True)

    def __init__(self, stage: RunnerEnvironment, scenario: Path = DEMO) -> None:
        self._stage = stage
        self._script = scenario

    async def health(self) -> RunnerHealth:
        """Healthy if the scenario is valid."""
        try:
            _read(self._script)
        except Failure as failure:
            return RunnerHealth(
                False, reason=failure.user_message, remedy="Choose another scenario."
            )
        return RunnerHealth(True)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[RehearsalConversation]:
        """Start the scripted agent at the turn that the conversation id names."""
        del memory
        begun = _begun(session)
        # Raises here, where the failure reaches the person, not in the process.
        _read(self._script)
        self._stage.clear()
        argv = (sys.executable, "-P", "-m", "holdfast.runners.rehearsal.process", str(self._script))
        async with self._stage.agent(*argv) as process:
            transport = ProcessTransport(process)
            async with Connection(transport) as connection:
                yield RehearsalConversation(connection, transport, begun)


class RehearsalConversation:
    """A conversation with the scripted agent."""

    def __init__(self, connection: Connection, transport: ProcessTransport, begun: int) -> None:
        self._connection = connection
        self._transport = transport
        self._begun = begun  # turns so far

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Play the next turn; the prompt is ignored."""
        del prompt, how
        is_over = False
        with self._connection.subscribe() as news:
            try:
                await self._asked(TURN, TurnParams(self._begun))
                self._begun += 1
                while not is_over:
                    events = [each for told in await news.receive() for each in _read_events(told)]
                    is_over = any(isinstance(each, TurnEnded) for each in events)
                    yield events
            except Failure as failure:
                is_over = True
                yield (TurnEnded(TurnEnding.FAILED, to_wire(self._ended(failure))),)
            finally:
                if not is_over:
                    await self._leave()

    async def steer(self, text: str) -> bool:
        """Scripts accept no further input."""
        del text
        return False

    async def answer(self, question: str, answer: str) -> bool:
        """Answer a question; False if it is no longer open."""
        return await self._asked(ANSWER, AnswerParams(question, answer))

    async def interrupt(self) -> None:
        """End the turn; an agent that does not respond is killed."""
        try:
            await self._asked(INTERRUPT, None, timeout=_END_LONGEST)
        except Failure:
            await self._transport.aclose()

    async def _asked(
        self, method: str, params: object, *, timeout: float = _ANSWER_LONGEST
    ) -> bool:
        taken = await self._connection.request(method, params, timeout=timeout, result=TurnAccepted)
        return taken.taken

    async def _leave(self) -> None:
        with anyio.CancelScope(shield=True), suppress(Failure):
            await self.interrupt()

    def _ended(self, failure: Failure) -> RunnerEnded:
        return RunnerEnded(runner=NAME, reason=failure.user_message, stderr=self._transport.stderr)


def _read_events(told: Notification) -> Sequence[AnyEvent]:
    return _events.decode(told.params) if told.method == EVENTS else ()


def _begun(session: str | None) -> int:
    """Return the number of turns from a conversation id."""
    if session is None:
        return 0
    _, mark, number = session.rpartition("#")
    if not mark or not number.isascii() or not number.isdigit():
        raise SessionUnknown(runner=NAME, session=session)
    return int(number)


def _read(script: Path) -> None:
    try:
        text = script.read_text()
    except OSError as error:
        raise disk_failure(error, path=str(script)) from error
    except UnicodeDecodeError as error:
        raise ScenarioInvalid(name=script.name, problem="it is no text") from error
    read_scenario(script.stem, text)


# The sample project: small, with a bug that the demo scenario fixes.

FILES: Final = {
    "basket.py": '''\
"""What is in a shopping basket, and what it costs."""


def total(prices: list[int]) -> int:
    """The sum of all prices."""
    result = 0
    for place in range(len(prices) - 1):
        result += prices[place]
    return result
''',
    "test_basket.py": '''\
"""What is paid is what was taken."""

import unittest

from basket import total


class TestBasket(unittest.TestCase):
    def test_an_empty_basket_costs_nothing(self) -> None:
        self.assertEqual(total([]), 0)

    def test_everything_is_paid_for(self) -> None:
        self.assertEqual(total([3, 4, 5]), 12)




if __name__ == "__main__":
    unittest.main()
''',
    "README.md": "# Basket\n\nRun the tests: `python3 -m unittest`\n",
    ".gitignore": "__pycache__/\n",
}


def is_sample(directory: Path) -> bool:
    """Whether a directory contains the sample project, in whatever state."""
    try:
        return (directory / "README.md").read_text() == FILES["README.md"]
    except (OSError, ValueError):
        return False


def write_sample(directory: Path) -> None:
    """Write the sample project, and create the directory if needed."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (directory / name).write_text(text)
