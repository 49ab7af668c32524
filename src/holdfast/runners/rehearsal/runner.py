"""Carry turns out by a script: no key, no network, and as reliable or as broken as it says."""

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
_ANSWER_LONGEST = 60.0  # its start included; one that dies is not waited for
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
        """Healthy if the scenario makes sense."""
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
        """Start the scripted agent; it continues with the turn that the word names."""
        del memory
        begun = _begun(session)
        _read(self._script)  # what makes no sense is said here, where somebody hears it
        self._stage.clear()
        argv = (sys.executable, "-P", "-m", "holdfast.runners.rehearsal.process", str(self._script))
        async with self._stage.agent(*argv) as process:
            transport = ProcessTransport(process)
            async with Connection(transport) as connection:
                yield RehearsalConversation(connection, transport, begun)


class RehearsalConversation:
    """A conversation with a scripted agent."""

    def __init__(self, connection: Connection, transport: ProcessTransport, begun: int) -> None:
        self._connection = connection
        self._transport = transport
        self._begun = begun  # turns, so far

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Play the next turn; whatever the prompt says, the script decides."""
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
        """No script can be talked into anything."""
        del text
        return False

    async def answer(self, question: str, answer: str) -> bool:
        """Answer what the script asks; say whether it was still waiting for that."""
        return await self._asked(ANSWER, AnswerParams(question, answer))

    async def interrupt(self) -> None:
        """End the turn; an agent that does not hear is killed."""
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
    """How many turns were begun, by the word that the agent gave."""
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


# A small project with a mistake in it, for the scenario that mends it.

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
    """Whether a directory still holds the project, whatever its files in Python have become."""
    try:
        return (directory / "README.md").read_text() == FILES["README.md"]
    except (OSError, ValueError):
        return False


def write_sample(directory: Path) -> None:
    """Write the project into a directory, made if it is missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (directory / name).write_text(text)
