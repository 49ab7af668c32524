"""Contract suite for runners."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    MemoryRecorded,
    QuestionAsked,
    SessionKnown,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    TurnStarted,
)
from holdfast.runners.ports import Conversation, Runner
from holdfast.world import command_of, system_processes

PATIENCE = 60.0
NEVER_BEGUN = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Says:
    """The agent emits this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Runs:
    """The agent runs this command; with `needs_permission`, it asks first."""

    command: str
    needs_permission: bool = False


Turns = Sequence[Sequence[Says | Runs]]
Prepare = Callable[[Turns], AbstractAsyncContextManager[Runner]]
"""Provides a runner whose agent does this, turn by turn, in the directory `root`."""


class RunnerJournal:
    """Stores runner state, as a host does."""

    def __init__(self) -> None:
        self.kept: list[MemoryRecorded] = []

    def __call__(self) -> Sequence[MemoryRecorded]:
        """Return all records in order."""
        return self.kept

    def keep(self, batch: Sequence[AnyEvent]) -> None:
        """Store the records of a batch."""
        self.kept += [each for each in batch if isinstance(each, MemoryRecorded)]


class RunnerContract:
    """What every runner must do; each runner's test class inherits this and provides fixtures.

    `root` is the agent's directory, `prepare` returns a runner with a script, `kill` kills the
    agent's process.
    """

    pytestmark = pytest.mark.anyio
    died = "RUNNER_ENDED"  # failure code of a turn whose agent was killed

    @pytest.fixture
    def memory(self) -> RunnerJournal:
        return RunnerJournal()

    async def test_a_turn_begins_and_ends_once(
        self, prepare: Prepare, memory: RunnerJournal
    ) -> None:
        async with (
            prepare([[Says("Hello you.")]]) as runner,
            runner.converse(None, memory) as conversation,
        ):
            events = await heard(conversation, memory)

        assert [each for each in events if isinstance(each, TurnStarted)] == [TurnStarted()]
        assert [each for each in events if isinstance(each, TurnEnded)] == [events[-1]]
        assert events[-1] == TurnEnded(TurnEnding.COMPLETED)
        assert [each.text for each in events if isinstance(each, TextCompleted)] == ["Hello you."]

    async def test_what_is_done_is_told(
        self, prepare: Prepare, memory: RunnerJournal, root: Path
    ) -> None:
        script: Turns = [[Runs("echo out; echo made >made"), Says("Done.")]]
        async with prepare(script) as runner, runner.converse(None, memory) as conversation:
            events = await heard(conversation, memory)

        (started,) = (each for each in events if isinstance(each, ToolStarted))
        (ended,) = (each for each in events if isinstance(each, ToolEnded))
        assert (started.item, "echo out" in started.title) == (ended.item, True)
        assert (ended.is_ok, ended.status, ended.output) == (True, 0, "out\n")
        assert (root / "made").read_text() == "made\n"

    async def test_a_command_that_fails_is_no_failure_of_the_turn(
        self, prepare: Prepare, memory: RunnerJournal
    ) -> None:
        script: Turns = [[Runs("echo bad; exit 3"), Says("It failed.")]]
        async with prepare(script) as runner, runner.converse(None, memory) as conversation:
            events = await heard(conversation, memory)

        (ended,) = (each for each in events if isinstance(each, ToolEnded))
        assert (ended.is_ok, ended.status) == (False, 3)
        assert events[-1] == TurnEnded(TurnEnding.COMPLETED)

    async def test_another_process_continues(self, prepare: Prepare, memory: RunnerJournal) -> None:
        async with prepare([[Says("One.")], [Says("Two.")], [Says("Three.")]]) as runner:
            async with runner.converse(None, memory) as conversation:
                events = [*await heard(conversation, memory), *await heard(conversation, memory)]
            session = [each.session for each in events if isinstance(each, SessionKnown)][-1]
            async with runner.converse(session, memory) as conversation:
                events += await heard(conversation, memory)

        said = [each.text for each in events if isinstance(each, TextCompleted)]
        assert said == ["One.", "Two.", "Three."]

    async def test_nobody_continues_what_was_never_begun(
        self, prepare: Prepare, memory: RunnerJournal
    ) -> None:
        async with prepare([[Says("One.")]]) as runner:
            with pytest.raises(SessionUnknown):
                async with runner.converse(NEVER_BEGUN, memory):
                    pass

    async def test_an_interrupt_ends_all(
        self, prepare: Prepare, memory: RunnerJournal, root: Path
    ) -> None:
        mark = f"1000.{secrets.randbelow(10**9)}"
        script: Turns = [[Runs(f"touch begun; exec sleep {mark}"), Says("Never.")]]
        async with prepare(script) as runner, runner.converse(None, memory) as conversation:
            events = await heard(
                conversation,
                memory,
                until=lambda: (root / "begun").exists(),
                then=conversation.interrupt,
            )

        assert events[-1] == TurnEnded(TurnEnding.INTERRUPTED)
        await gone(mark)

    async def test_who_leaves_in_the_middle_interrupts(
        self, prepare: Prepare, memory: RunnerJournal, root: Path
    ) -> None:
        mark = f"mark-{secrets.token_hex(8)}"
        loop = f": {mark}; touch begun; while :; do echo again; sleep 0.1; done"
        async with (
            prepare([[Runs(loop), Says("Never.")]]) as runner,
            runner.converse(None, memory) as conversation,
        ):
            with anyio.fail_after(PATIENCE):
                async with aclosing(conversation.take_turn("go")) as turn:
                    async for batch in turn:
                        memory.keep(batch)
                        if (root / "begun").exists():
                            break
            await gone(mark)

    @pytest.mark.parametrize("is_allowed", [True, False])
    async def test_leave_is_asked_for(
        self, prepare: Prepare, memory: RunnerJournal, root: Path, *, is_allowed: bool
    ) -> None:
        script: Turns = [[Runs("echo made >made", needs_permission=True), Says("Done.")]]
        asked: list[QuestionAsked] = []
        async with prepare(script) as runner, runner.converse(None, memory) as conversation:

            async def answer(question: QuestionAsked) -> None:
                asked.append(question)
                allowed = next(each.word for each in question.choices if not each.is_refusal)
                word = allowed if is_allowed else question.refusal
                assert await conversation.answer(question.question, word)

            events = await heard(conversation, memory, answer=answer)
            assert not await conversation.answer(asked[0].question, asked[0].refusal), (
                "it was answered"
            )

        assert events[-1] == TurnEnded(TurnEnding.COMPLETED)
        assert [(each.is_approval, bool(each.title)) for each in asked] == [(True, True)]
        assert (root / "made").exists() == is_allowed

    async def test_an_agent_that_dies_fails_its_turn(
        self, prepare: Prepare, memory: RunnerJournal, root: Path, kill: Callable[[], None]
    ) -> None:
        script: Turns = [[Says("Once."), Runs("touch begun; exec sleep 1000")], [Says("Again.")]]
        async with prepare(script) as runner:
            async with runner.converse(None, memory) as conversation:

                async def die() -> None:
                    kill()

                events = await heard(
                    conversation, memory, until=lambda: (root / "begun").exists(), then=die
                )
            ended = events[-1]
            assert isinstance(ended, TurnEnded)
            assert ended.failure is not None
            assert (ended.ending, ended.failure["code"]) == (TurnEnding.FAILED, self.died)
            session = [each.session for each in events if isinstance(each, SessionKnown)][-1]
            async with runner.converse(session, memory) as conversation:
                again = await heard(conversation, memory)

        assert [each.text for each in again if isinstance(each, TextCompleted)] == ["Again."]

    async def test_it_says_how_it_is(self, prepare: Prepare) -> None:
        async with prepare([[Says("One.")]]) as runner:
            health = await runner.health()

        assert (health.is_healthy, health.reason) == (True, "")


async def heard(
    conversation: Conversation,
    memory: RunnerJournal | None = None,
    *,
    until: Callable[[], bool] | None = None,
    then: Callable[[], Coroutine[object, object, None]] | None = None,
    answer: Callable[[QuestionAsked], Coroutine[object, object, None]] | None = None,
) -> list[AnyEvent]:
    """Collect all events of a turn except deltas; calls `then` once `until` holds."""
    events: list[AnyEvent] = []
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            if until is not None:
                tasks.start_soon(_once, until, then)
            async for batch in conversation.take_turn("go"):
                if memory is not None:
                    memory.keep(batch)
                events += [each for each in batch if not isinstance(each, Delta)]
                for each in batch:
                    if isinstance(each, QuestionAsked):
                        assert answer is not None, each
                        tasks.start_soon(answer, each)
    return events


async def gone(mark: str) -> None:
    """Wait until no process has this mark in its command line, in any namespace."""
    with anyio.fail_after(PATIENCE):
        while _runs(mark):  # noqa: ASYNC110  # there is no event to wait for
            await anyio.sleep(0.01)


def _runs(mark: str) -> bool:
    return any(mark in command_of(each.pid) for each in system_processes())


async def _once(
    until: Callable[[], bool], then: Callable[[], Coroutine[object, object, None]] | None
) -> None:
    while not until():  # noqa: ASYNC110  # a file appears: there is no event to wait for
        await anyio.sleep(0.01)
    assert then is not None
    await then()
