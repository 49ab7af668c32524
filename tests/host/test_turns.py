"""Turns are taken one after the other, and what comes of them is written down, whatever happens."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from copy import copy

import anyio
import msgspec
import pytest

from holdfast.failures import Ids, to_wire
from holdfast.host.client import DeltasReceived, HostClient, RecordReceived
from holdfast.host.failures import CommandReused, HostCrashed
from holdfast.host.model import (
    AbortCommand,
    AnswerCommand,
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    CloseCommand,
    EventRecorded,
    PromptCommand,
    PromptQueued,
    PublicationRecorded,
    PublicationStarted,
    QuestionAnswered,
    RevisionRecorded,
    SessionEnded,
    SessionOpened,
    SteerCommand,
    SteeringAccepted,
    ToolsRepaired,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.protocol import JournalTrouble as Troubled
from holdfast.host.session import SessionPhase
from holdfast.host.turns import EndOrphans
from holdfast.runners.failures import OptionUnknown, RunnerEnded
from holdfast.runners.memory import EventScript
from holdfast.runners.model import (
    AnswerChoice,
    Delta,
    DeltaKind,
    MemoryRecorded,
    NoticeIssued,
    QuestionAsked,
    SessionKnown,
    TextCompleted,
    ToolStarted,
    TurnEnding,
    TurnStarted,
)
from holdfast.world.testing import CrashingDisk, DiskFaults
from tests.host.staging import hosted, until
from tests.simulation.clock import VirtualTimeLoop

pytestmark = pytest.mark.anyio
AT = 1_700_000_000_000
ASKED = QuestionAsked(
    "q1", "May I?", choices=(AnswerChoice("yes"), AnswerChoice("no", is_refusal=True))
)
OURS = Ids(session_id="s1", runner_type="puppet")
ENDED = RunnerEnded(runner="puppet", reason="killed")


@pytest.fixture(params=range(3), ids="seed{}".format)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": lambda: VirtualTimeLoop(seed=request.param)}


def is_closed(record: AnyRecord) -> bool:
    return isinstance(record, TurnClosed)


def plain(kept: Sequence[RecordReceived]) -> list[AnyRecord]:
    return [
        each.record for each in kept if not isinstance(each.record, SessionOpened | AttemptStarted)
    ]


async def asked(call: HostClient) -> None:
    await until(call, lambda each: isinstance(each, EventRecorded) and each.event == ASKED)


async def test_a_turn_is_written_down_from_its_prompt_to_its_end() -> None:
    async with hosted(
        [[TurnStarted(), Delta("1", DeltaKind.TEXT, "He"), TextCompleted("1", "Hello")]]
    ) as host:
        async with host.call() as call:
            await call.command(PromptCommand("c1", "go"))
            kept = await until(call, is_closed)
            state = await call.state()

    assert plain(kept) == [
        PromptQueued("c1", 1, "go", AT),
        TurnBegun(1, AT),
        EventRecorded(1, SessionKnown("1")),
        EventRecorded(1, TurnStarted()),
        EventRecorded(1, TextCompleted("1", "Hello")),
        RevisionRecorded(1, 1, "cp_1"),
        TurnClosed(1, TurnEnding.COMPLETED, AT, report="/reports/1"),
    ]
    assert [each.seq for each in kept] == list(range(1, len(kept) + 1))
    assert (host.bench.prepared, host.puppet.heard, state.phase) == (1, ["go"], SessionPhase.IDLE)


async def test_what_is_said_twice_is_done_once() -> None:
    async with hosted([[TextCompleted("1", "Hello")]]) as host, host.call() as call:
        first = await call.command(PromptCommand("c1", "go"))
        kept = await until(call, is_closed)
        again = await call.command(PromptCommand("c1", "go"))
        assert (first, again) == (3, kept[-1].seq)

        async with host.call() as another:
            await another.command(PromptCommand("c1", "go"))
            await anyio.sleep(1)

    assert host.puppet.heard == ["go"]


async def test_how_a_turn_is_to_be_taken_reaches_the_runner_or_is_refused() -> None:
    async with hosted([[TextCompleted("1", "Hello")]]) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go", {"model": "a/b"}))
        kept = await until(call, is_closed)
        with pytest.raises(CommandReused):
            await call.command(PromptCommand("c1", "go", {"model": "a/c"}))
        with pytest.raises(OptionUnknown) as refused:
            await call.command(PromptCommand("c2", "go", {"weather": "fine"}))

    assert PromptQueued("c1", 1, "go", AT, {"model": "a/b"}) in plain(kept)
    assert (host.puppet.heard, host.puppet.how) == (["go"], [{"model": "a/b"}])
    assert refused.value.details == {
        "option": "weather",
        "runner": "puppet",
        "known": ("model", "effort"),
    }


async def test_what_a_runner_keeps_for_itself_is_given_to_its_next_conversation() -> None:
    memo = MemoryRecorded(msgspec.Raw(b'{"n":1}'))
    script: EventScript = [[memo, ENDED], [TextCompleted("1", "Hello")]]
    async with hosted(script) as host, host.call() as call:
        for number in (1, 2):
            await call.command(PromptCommand(f"c{number}", "go"))
        await until(call, lambda each: isinstance(each, TurnClosed) and each.turn == 2)

    assert (host.puppet.conversations, host.puppet.remembered) == (2, [memo])


async def test_prompts_wait_for_their_turn() -> None:
    async with (
        hosted([[1.0, TextCompleted("1", "One")], [TextCompleted("2", "Two")]]) as host,
        host.call() as call,
    ):
        for number in (1, 2):
            await call.command(PromptCommand(f"c{number}", str(number)))
        kept = await until(call, lambda each: isinstance(each, TurnClosed) and each.turn == 2)

    assert host.puppet.heard == ["1", "2"]
    assert [each.turn for each in plain(kept) if isinstance(each, TurnBegun)] == [1, 2]
    assert host.puppet.conversations == 1


async def test_deltas_are_shown_and_not_kept() -> None:
    delta = Delta("1", DeltaKind.TEXT, "He")
    shown: list[DeltasReceived] = []
    async with hosted([[0.1, delta, TextCompleted("1", "Hello")]]) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        async for news in call.watch():
            shown += [each for each in news if isinstance(each, DeltasReceived)]
            if any(isinstance(each, RecordReceived) and is_closed(each.record) for each in news):
                break

    assert shown == [DeltasReceived((delta,))]


@pytest.mark.parametrize("answer", ["yes", "no"])
async def test_an_answer_reaches_who_asked(answer: str) -> None:
    async with hosted([[ASKED, TextCompleted("1", "Thanks")]]) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        await asked(call)
        assert (await call.state()).phase is SessionPhase.WAITING
        await call.command(AnswerCommand("c2", "q1", answer))
        kept = await until(call, is_closed)

    assert host.puppet.answers == {"q1": answer}
    assert QuestionAnswered("q1", answer, AnswerSource.PERSON, "c2") in plain(kept)


async def test_who_does_not_answer_refuses() -> None:
    async with hosted([[ASKED]], answer_longest=300.0) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        began = anyio.current_time()
        kept = await until(call, is_closed)

    assert anyio.current_time() - began >= 300.0
    assert host.puppet.answers == {"q1": "no"}
    assert QuestionAnswered("q1", "no", AnswerSource.NOBODY) in plain(kept)


@pytest.mark.promise("A11")
async def test_an_abort_ends_the_turn_and_what_waits() -> None:
    script = [[ToolStarted("t1", "run", "make"), 1e6]]
    async with hosted(script) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        await call.command(PromptCommand("c2", "then"))
        await until(
            call, lambda each: isinstance(each, EventRecorded) and each.event == script[0][0]
        )
        began = anyio.current_time()
        await call.command(AbortCommand("c3"))
        kept = await until(call, is_closed)
        assert anyio.current_time() - began < 0.1
        await anyio.sleep(10)

    assert plain(kept)[-4:] == [
        TurnAborted("c3", 1),
        RevisionRecorded(1, 1, "cp_1"),
        ToolsRepaired(1, ("t1",)),
        TurnClosed(1, TurnEnding.INTERRUPTED, AT, report="/reports/1"),
    ]
    assert host.puppet.heard == ["go"]


async def test_a_turn_that_takes_it_is_steered() -> None:
    async with hosted([[1.0, TextCompleted("1", "Hello")]]) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        await until(call, lambda each: isinstance(each, EventRecorded))
        for _ in range(2):
            await call.command(SteerCommand("c2", "mind this"))
        kept = await until(call, is_closed)

    assert host.puppet.heard == ["go", "mind this"]
    assert SteeringAccepted("c2", 1, "mind this") in plain(kept)


async def test_what_breaks_a_conversation_fails_the_turn_and_the_next_one_begins_anew() -> None:
    async with hosted([[TextCompleted("1", "One"), ENDED], [TextCompleted("2", "Two")]]) as host:
        async with host.call() as call:
            await call.command(PromptCommand("c1", "1"))
            kept = await until(call, is_closed)
            await call.command(PromptCommand("c2", "2"))
            again = await until(call, is_closed, after=kept[-1].seq)

    closed = plain(kept)[-1]
    assert isinstance(closed, TurnClosed)
    assert closed.failure is not None
    assert (closed.ending, closed.failure["code"]) == (TurnEnding.FAILED, "RUNNER_ENDED")
    assert plain(again)[-1] == TurnClosed(2, TurnEnding.COMPLETED, AT, report="/reports/2")
    assert (host.puppet.heard, host.puppet.conversations) == (["1", "2"], 2)


async def test_who_closes_a_session_ends_its_turn() -> None:
    async with hosted([[1e6]]) as host, host.call() as call:
        await call.command(PromptCommand("c1", "go"))
        await until(call, lambda each: isinstance(each, EventRecorded))
        await call.command(CloseCommand("c2"))
        kept = await until(call, is_closed)
        await anyio.sleep(1)

    assert [each for each in plain(kept) if isinstance(each, SessionEnded)] == [
        SessionEnded("c2", AT)
    ]
    assert host.book.session.phase is SessionPhase.CLOSED


@pytest.mark.promise("A2", "A3", "A6", "R3")
async def test_the_next_host_goes_on_where_the_last_one_died() -> None:
    disk = CrashingDisk()
    script = [[ToolStarted("t1", "run", "make"), 1e6], [TextCompleted("2", "Two")]]
    async with hosted(script, disk=disk) as host, host.call() as call:
        await call.command(PromptCommand("c1", "1"))
        await call.command(PromptCommand("c2", "2"))
        await until(
            call, lambda each: isinstance(each, EventRecorded) and each.event == script[0][0]
        )

    async with hosted(script, disk=disk) as host, host.call() as call:
        kept = await until(call, lambda each: isinstance(each, TurnClosed) and each.turn == 2)

    records = [each.record for each in kept]
    crashed = records[records.index(AttemptStarted(2, 1_000, "killed")) :]
    assert crashed[1] == ToolsRepaired(1, ("t1",))
    lost = HostCrashed(session="s1", turn=1, reason="killed")
    lost.during("host.turn").about(OURS).stamped(AT / 1000)
    assert crashed[2] == TurnClosed(1, TurnEnding.FAILED, AT, to_wire(lost), "/reports/1")
    assert lost.user_message == (
        "The agent crashed and lost its current turn. Your conversation history is saved. "
        "Press Enter to continue."
    )
    assert crashed[-1] == TurnClosed(2, TurnEnding.COMPLETED, AT, report="/reports/2")
    assert host.puppet.heard == ["2"]


@pytest.mark.promise("A12")
async def test_agents_of_an_earlier_host_are_ended_before_their_turn_is_over() -> None:
    disk = CrashingDisk()
    script = [[ToolStarted("t1", "run", "make"), 1e6]]
    ended: list[int] = []
    async with hosted(script, disk=disk, end_earlier=ended_at(ended)) as host, host.call() as call:
        await call.command(PromptCommand("c1", "1"))
        await until(call, lambda each: isinstance(each, EventRecorded))
    assert ended == []  # the first host has none before it

    release = anyio.Event()

    async def end_slowly() -> Sequence[str]:
        await release.wait()
        return ("sleep 9 (7)",)

    async with hosted(script, disk=disk, end_earlier=end_slowly) as host, host.call() as call:
        await anyio.sleep(30)
        assert host.book.kept.is_running  # nobody is told that it is over
        release.set()
        kept = await until(call, lambda each: isinstance(each, TurnClosed))
    text = "These processes of an earlier agent could not be ended: sleep 9 (7)"
    assert [each.record for each in kept][-2] == EventRecorded(1, NoticeIssued(text))

    async with hosted(script, disk=disk, end_earlier=ended_at(ended)) as host, host.call() as call:
        await until(call, lambda each: isinstance(each, TurnClosed))
    assert ended == [3]  # also if no turn was left running


def ended_at(ended: list[int]) -> EndOrphans:
    async def end() -> Sequence[str]:
        ended.append(3)
        return ()

    return end


@pytest.mark.promise("A12")
async def test_a_turn_ends_also_if_its_agents_cannot_be_ended() -> None:
    disk = CrashingDisk()
    async with hosted([[1e6]], disk=disk) as host, host.call() as call:
        await call.command(PromptCommand("c1", "1"))
        await until(call, lambda each: isinstance(each, TurnBegun))

    async def end() -> Sequence[str]:
        raise OSError(errno.EIO, "no /proc")

    async with hosted([], disk=disk, end_earlier=end) as host, host.call() as call:
        kept = await until(call, lambda each: isinstance(each, TurnClosed))
    assert closed_code(kept) == "HOST_CRASHED"


@pytest.mark.promise("A7")
@pytest.mark.parametrize(("at_ms", "code"), [(AT, "HOST_STOPPED"), (AT - 1, "HOST_CRASHED")])
async def test_a_turn_that_was_stopped_on_purpose_says_so(at_ms: int, code: str) -> None:
    """Unless everything was stopped before the turn began."""
    disk = CrashingDisk()
    async with hosted([[1e6]], disk=disk) as host, host.call() as call:
        await call.command(PromptCommand("c1", "1"))
        await until(call, lambda each: isinstance(each, TurnBegun))

    def stopped_by(since: int) -> str:
        return "ann" if at_ms >= since else ""

    async with hosted([], disk=disk, stopped_by=stopped_by) as host, host.call() as call:
        kept = await until(call, lambda each: isinstance(each, TurnClosed))
    assert closed_code(kept) == code


@pytest.mark.promise("A7")
async def test_an_agent_that_is_stopped_before_its_host_is_no_failure_of_its_own() -> None:
    script: EventScript = [[RunnerEnded(runner="puppet", reason="killed")]]
    async with hosted(script, stopped_by=lambda _: "ann") as host, host.call() as call:
        await call.command(PromptCommand("c1", "1"))
        kept = await until(call, lambda each: isinstance(each, TurnClosed))
    assert closed_code(kept) == "HOST_STOPPED"


def closed_code(kept: list[RecordReceived]) -> object:
    closed = kept[-1].record
    assert isinstance(closed, TurnClosed)
    assert closed.failure is not None
    return closed.failure["code"]


async def test_what_is_done_in_place_is_published_before_the_turn_is_over() -> None:
    script = [
        [TextCompleted("1", "One")],
        [TextCompleted("2", "Two"), ENDED],
        [TextCompleted("3", "Three")],
    ]
    async with hosted(script) as host, host.call() as call:
        for number, is_in_place in ((1, True), (2, True), (3, False)):
            await call.command(PromptCommand(f"c{number}", "go", is_in_place=is_in_place))
        kept = await until(call, lambda each: is_closed(each) and getattr(each, "turn", 0) == 3)

    ended = [
        each
        for each in plain(kept)
        if isinstance(each, PublicationStarted | PublicationRecorded | TurnClosed)
    ]
    assert ended[:3] == [
        PublicationStarted(1, "s1/1"),
        PublicationRecorded(1, 1, "cp_s1/1"),
        TurnClosed(1, TurnEnding.COMPLETED, AT, report="/reports/1"),
    ]
    assert [type(each) for each in ended[3:]] == [TurnClosed, TurnClosed]
    assert host.bench.delivered == ["s1/1"]


async def test_what_cannot_be_published_is_said_with_the_end_of_the_turn() -> None:
    async with hosted([[TextCompleted("1", "One")]]) as host, host.call() as call:
        host.bench.refusal = ENDED
        await call.command(PromptCommand("c1", "go", is_in_place=True))
        closed = plain(await until(call, is_closed))[-1]

    refused = to_wire(copy(ENDED).during("host.publish").about(OURS).stamped(AT / 1000))
    assert closed == TurnClosed(1, TurnEnding.COMPLETED, AT, refused, "/reports/1")


@pytest.mark.promise("R8")
async def test_the_next_host_publishes_what_the_last_one_was_to_publish() -> None:
    disk = CrashingDisk()
    async with hosted([[TextCompleted("1", "One")]], disk=disk) as host, host.call() as call:
        host.bench.delay = 1e6
        await call.command(PromptCommand("c1", "go", is_in_place=True))
        await until(call, lambda each: isinstance(each, PublicationStarted))

    async with hosted([], disk=disk) as host, host.call() as call:
        records = plain(await until(call, is_closed))

    assert records[-2:] == [
        PublicationRecorded(1, 1, "cp_s1/1"),
        TurnClosed(1, TurnEnding.COMPLETED, AT, report="/reports/1"),
    ]
    assert host.puppet.heard == []


@pytest.mark.promise("A11")
async def test_a_full_disk_stops_a_turn_and_it_goes_on_when_there_is_room() -> None:
    async with (
        hosted([[1.0, TextCompleted("1", "One"), TextCompleted("2", "Two")]]) as host,
        host.call() as call,
    ):
        await call.command(PromptCommand("c1", "go"))
        troubles: list[Troubled] = []
        kept: list[RecordReceived] = []
        async for news in call.watch():
            kept += [each for each in news if isinstance(each, RecordReceived)]
            if (
                any(each.record == EventRecorded(1, SessionKnown("1")) for each in kept)
                and not troubles
            ):
                host.disk.trouble = DiskFaults(
                    errors={host.disk.operations + 2 + 3 * n: errno.ENOSPC for n in range(1)}
                )
            troubles += [each for each in news if isinstance(each, Troubled)]
            if kept and is_closed(kept[-1].record):
                break

    assert [each.failure is None for each in troubles][-2:] == [False, True]
    assert (troubles[0].failure or {})["code"] == "DISK_FULL"
    said = [each for each in plain(kept) if isinstance(each, EventRecorded)]
    assert [each.event for each in said[1:]] == [
        TextCompleted("1", "One"),
        TextCompleted("2", "Two"),
    ]
