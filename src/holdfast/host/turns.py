"""Run the turns of a session one after the other, and record what happens.

    TurnBegun ▶ draft.prepare ▶ runner.take_turn ▶ draft.revise ▶ [publish] ▶ report ▶ TurnClosed

All input arrives through the journal: `run` waits for changes of its durable state and acts on it.
A prompt, an abort, an answer or a close is first a record, then an effect.

Invariants:

- Nothing acts on a record that is not durable; while the disk is full, the turn stands still
  and clients receive the reason (`keep`).
- A turn is closed exactly once. A turn that the previous host left open is closed first; if
  its publication had begun, that is completed under the same key.
- Agents of previous hosts are ended before a turn is reported as over: they would go on to
  call the model and write into the draft.
- A question is answered exactly once: by a client, or by refusal after `answer_longest`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, suppress
from functools import partial
from typing import Final, Protocol

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec.structs import replace

from holdfast.failures import Failure, Ids, boundary, to_wire
from holdfast.host.failures import HostCrashed, HostStopped
from holdfast.host.journal import SessionJournal
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    EventRecorded,
    PromptQueued,
    PublicationRecorded,
    PublicationStarted,
    QuestionAnswered,
    RevisionRecorded,
    SteerCommand,
    SteeringAccepted,
    ToolsRepaired,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.ports import DraftRevision, SessionDraft
from holdfast.host.session import decide, next_turn
from holdfast.runners import Conversation, ReadMemory
from holdfast.runners.failures import OptionUnknown, RunnerEnded, SessionUnknown
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    NoticeIssued,
    QuestionAsked,
    SessionKnown,
    TextCompleted,
    TurnEnded,
    TurnEnding,
    WaitingReported,
)
from holdfast.world import Clock, background_tasks

# A runner that has lost its conversation receives it again as text.

RETOLD_CHARS_MAX: Final = 200_000  # characters of the newest messages
_HEAD: Final = (
    "You have taken part in this conversation before, and no longer know it. This is what was "
    "said{cut}; what you did is in the files. Go on from here.\n\n"
)
_CUT: Final = ", but for its beginning"
_NOW: Final = "Person, now: "


def retold(records: Iterable[AnyRecord], prompted: PromptQueued) -> str:
    """Return the prompt, preceded by the conversation before it."""
    said = [words for record in records if (words := _words(record, prompted))]
    if not said:
        return prompted.text
    kept, room = list[str](), RETOLD_CHARS_MAX
    for words in reversed(said):
        room -= len(words)
        if room < 0:
            break
        kept.append(words)
    head = _HEAD.format(cut=_CUT if len(kept) < len(said) else "")
    return head + "".join(reversed(kept)) + _NOW + prompted.text


def _words(record: AnyRecord, prompted: PromptQueued) -> str:
    match record:
        case PromptQueued(turn=turn, text=text) if turn < prompted.turn:
            return f"Person: {text}\n\n"
        case SteeringAccepted(text=text):
            return f"Person: {text}\n\n"
        case EventRecorded(event=TextCompleted(text=text)):
            return f"You: {text}\n\n"
        case _:
            return ""


_decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def forgotten_notice(unknown: SessionUnknown) -> NoticeIssued:
    """Return the notice for the person."""
    text = "The agent no longer knows this conversation. It receives the earlier messages again."
    return NoticeIssued(text, to_wire(unknown))


async def recalled(journal: SessionJournal, prompted: PromptQueued) -> str:
    """Return the prompt for a runner that has lost the conversation."""
    records: list[AnyRecord] = []
    last = journal.seq
    async with aclosing(journal.follow(0)) as pages:
        async for page in pages:
            records += [_decoder.decode(line.data) for line in page]
            if page[-1].seq >= last:
                break
    return retold(records, prompted)


ANSWER_LONGEST: Final = 24 * 3600.0  # seconds; timeout of a question
_ROOM_AGAIN: Final = 1.0  # seconds between attempts to write on a full disk
_INSIST: Final = 1.0  # seconds between interrupts of a turn that does not end

_BEFORE: Final = (
    SessionKnown,
    TurnEnded,
    WaitingReported,
    # Events of an agent before it has done anything.
)


class TurnRunner(Protocol):
    """A runner; its dependencies may be loaded when the first turn begins."""

    @property
    def name(self) -> str:
        """The name that users choose it by."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """Names of options for a turn."""
        ...

    def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AbstractAsyncContextManager[Conversation]:
        """Begin a conversation, or continue one by the id of an earlier `SessionKnown`."""
        ...


ShowDeltas = Callable[[Sequence[Delta]], None]
"""Displays deltas; must not block or raise."""

ReportTrouble = Callable[[Failure | None], None]
"""Reports why the journal cannot be written; None when it can again."""


EndOrphans = Callable[[], Awaitable[Sequence[str]]]
"""Ends processes of earlier hosts; returns the commands that could not be ended."""


async def no_orphans() -> Sequence[str]:
    """Default: earlier hosts left no processes."""
    return ()


class SessionTurns:
    """Runs turns with a runner, and passes commands to the running one."""

    def __init__(  # noqa: PLR0913  # only the host makes one, all by keyword
        self,
        *,
        journal: SessionJournal,
        runner: TurnRunner,
        draft: SessionDraft,
        clock: Clock,
        told: ShowDeltas,
        troubled: ReportTrouble,
        answer_longest: float = ANSWER_LONGEST,
        end_earlier: EndOrphans = no_orphans,
        stopped_by: Callable[[int], str] = lambda _: "",
    ) -> None:
        self._journal = journal
        self._runner = runner
        self._draft, self._clock = draft, clock
        self._told, self._troubled = told, troubled
        self._answer_longest = answer_longest
        self._end_earlier, self._stopped_by = end_earlier, stopped_by
        self._conversation: Conversation | None = None
        self._stack = AsyncExitStack()
        self._is_begun = False  # the running turn has had effects
        self._tasks: TaskGroup | None = None  # while `run` is active
        self._steering: set[str] = set()  # ids of steering commands in progress
        self._progressed = anyio.current_time()
        self._awaiting: WaitingReported | None = None  # since the last other event

    @property
    def idle_for(self) -> float:
        """Seconds since the last event of the running turn; 0 if none runs."""
        is_busy = self._journal.session.is_running and not self._journal.session.questions
        return anyio.current_time() - self._progressed if is_busy else 0.0

    @property
    def awaiting(self) -> tuple[str, float] | None:
        """The model or tool that the turn waits for, and for how many seconds."""
        if self._awaiting is None or not self.idle_for:
            return None
        return self._awaiting.what, self._awaiting.seconds + self.idle_for

    async def run(self) -> None:
        """Close a turn that was left open, then run queued prompts until the session closes."""
        # The stack is left first, so that conversations end before the tasks around them.
        async with background_tasks() as self._tasks, self._stack:
            if self._journal.kept.attempt > 1:
                await self._end_agents()
            if self._journal.kept.is_running:
                await self._end_left()
            while not self._journal.kept.is_closed:
                begun = next_turn(self._journal.kept, at_ms=self._now())
                if begun is None or not _if_wanted(self._journal, begun):
                    await self._journal.changed()
                    continue
                prompted = self._journal.kept.waiting[0]
                await self.keep(partial(_if_wanted, self._journal, begun))
                if self._journal.kept.turn == begun.turn:
                    await self._take(prompted)

    def check(self, how: Mapping[str, str]) -> None:
        """Raise OptionUnknown if the runner does not support an option."""
        for name in how:
            options = self._runner.options
            if name not in options:
                raise OptionUnknown(option=name, runner=self._runner.name, known=options)

    async def steer(self, command: SteerCommand) -> None:
        """Pass input to the running turn once; if it is not accepted, queue it as a prompt.

        Runs in a task of its own: accepted input is recorded even if the client disconnects.
        """
        if self._tasks is not None and command.id not in self._steering:
            self._steering.add(command.id)
            self._tasks.start_soon(self._steer, command)
        while command.id in self._steering:
            await self._journal.changed()

    async def keep(self, decided: Callable[[], Sequence[AnyRecord]]) -> None:
        """Write records, and retry while the disk is full.

        `decided` is called again before each attempt, since other records may have changed the
        decision.
        """
        is_troubled = False
        while records := decided():
            try:
                await self._journal.write(*records)
                break
            except Failure as failure:
                if not failure.retryable:
                    raise
                self._troubled(failure)
                is_troubled = True
                await anyio.sleep(_ROOM_AGAIN)
        if is_troubled:
            self._troubled(None)

    async def _steer(self, command: SteerCommand) -> None:
        conversation, is_taken = self._conversation, False
        try:
            with suppress(Failure):  # a failed write leaves the command to the caller's retry
                if conversation is not None and command.id not in self._journal.session.commands:
                    is_taken = await conversation.steer(command.text)
                is_new = decide(self._journal.session, command, at_ms=self._now())
                if is_new and not is_taken:
                    await self._journal.write(*is_new)
            if is_taken:
                await self._keep(
                    SteeringAccepted(command.id, self._journal.session.turn, command.text)
                )
        finally:
            self._steering.discard(command.id)
            self._journal.notify()

    async def _take(self, prompted: PromptQueued) -> None:
        turn, ended = prompted.turn, TurnEnded(TurnEnding.FAILED)
        made: DraftRevision | None = None
        try:
            with boundary("host.turn"):
                await self._draft.prepare()
                ended = await self._perform(prompted)
                made = await self._draft.revise(f"turn {turn}")
                if made is not None:
                    await self._keep(RevisionRecorded(turn, made.revision, made.checkpoint))
        except Failure as failure:
            ended = TurnEnded(TurnEnding.FAILED, self._told_of(failure))
        if ended.failure is not None:
            ended = self._stopped() or ended
        if ended.failure is not None:
            # After a failure the state of the agent is unknown: the next turn starts another one.
            await self._hang_up()
        elif prompted.is_in_place and ended.ending is TurnEnding.COMPLETED:
            await self._keep(PublicationStarted(turn, f"{self._journal.kept.id}/{turn}"))
        await self._close(turn, ended, made)

    async def _end_agents(self) -> None:
        """End the agents of earlier hosts, before their turn is reported as over.

        Otherwise they would go on to call the model and to write into the draft.
        """
        left: Sequence[str] = ()
        with suppress(Failure), boundary("host.end_earlier"):
            left = await self._end_earlier()
        if left:
            text = f"These processes of an earlier agent could not be ended: {'; '.join(left)}"
            await self._keep(EventRecorded(self._journal.kept.turn, NoticeIssued(text)))

    async def _end_left(self) -> None:
        """Close the turn that the previous host left; complete its publication if it had begun."""
        left = self._journal.kept
        ended = TurnEnded(TurnEnding.COMPLETED)
        if not left.is_done:
            crashed = HostCrashed(session=left.id, turn=left.turn, reason=left.reason)
            told = self._told_of(crashed.during("host.turn"))
            ended = self._stopped() or TurnEnded(TurnEnding.FAILED, told)
        await self._close(left.turn, ended, None)

    def _stopped(self) -> TurnEnded | None:
        """Return the ending of a turn that `holdfast stop` interrupted."""
        turn = self._journal.kept
        by = self._stopped_by(turn.turn_at_ms)
        if not by:
            return None
        stopped = HostStopped(session=turn.id, turn=turn.turn, by=by)
        return TurnEnded(TurnEnding.INTERRUPTED, self._told_of(stopped.during("host.turn")))

    async def _close(self, turn: int, ended: TurnEnded, made: DraftRevision | None) -> None:
        if self._journal.kept.publishing is not None:
            ended = await self._publish(turn, self._journal.kept.publishing, ended)
        records: list[AnyRecord] = []
        if self._journal.session.tools:
            records.append(ToolsRepaired(turn, self._journal.session.tools))
        closed = TurnClosed(turn, ended.ending, self._now(), ended.failure)
        # A report is a convenience: the journal has everything that it would say.
        with suppress(Failure), boundary("host.report"):
            closed = replace(closed, report=await self._draft.report(closed, made))
        await self._keep(*records, closed)

    async def _publish(self, turn: int, key: str, ended: TurnEnded) -> TurnEnded:
        """Publish the draft; a failure becomes part of the turn's end."""
        try:
            with boundary("host.publish"):
                done = await self._draft.publish(key)
        except Failure as failure:
            return replace(ended, failure=self._told_of(failure))
        await self._keep(PublicationRecorded(turn, done.paths, done.checkpoint))
        return ended

    async def _perform(self, prompted: PromptQueued) -> TurnEnded:
        """Run a turn; if the agent exited since the last turn, once more with a new one."""
        is_used = self._conversation is not None
        ended = await self._converse(prompted)
        if is_used and not self._is_begun and _has_ended(ended):
            await self._hang_up()
            ended = await self._converse(prompted)
        return ended

    async def _converse(self, prompted: PromptQueued) -> TurnEnded:
        self._progressed = anyio.current_time()
        self._is_begun = False
        self._awaiting = None
        text, conversation = await self._meet(prompted)
        if self._is_unwanted:
            return TurnEnded(TurnEnding.INTERRUPTED)
        turn = conversation.take_turn(text, prompted.how)
        async with background_tasks() as tasks, aclosing(turn) as batches:
            tasks.start_soon(self._end_if_unwanted, conversation)
            async for batch in batches:
                self._progressed = anyio.current_time()
                ended = await self._record_events(prompted.turn, batch, conversation, tasks)
                if ended is not None:
                    return ended
        raise AssertionError("a turn tells its end")

    async def _meet(self, prompted: PromptQueued) -> tuple[str, Conversation]:
        """Return the prompt and a conversation, restored if the runner has lost it."""
        text, session = prompted.text, self._journal.session.runner_session
        if self._conversation is None:
            try:
                self._conversation = await self._begin(session)
            except SessionUnknown as unknown:
                self._conversation = await self._begin(None)
                await self._keep(EventRecorded(prompted.turn, forgotten_notice(unknown)))
                text = await recalled(self._journal, prompted)
        return text, self._conversation

    async def _begin(self, session: str | None) -> Conversation:
        conversation = self._runner.converse(session, self._journal.remembered)
        return await self._stack.enter_async_context(conversation)

    async def _record_events(
        self, turn: int, batch: Sequence[AnyEvent], conversation: Conversation, tasks: TaskGroup
    ) -> TurnEnded | None:
        if deltas := [each for each in batch if isinstance(each, Delta)]:
            self._told(deltas)
        self._awaiting = batch[-1] if batch and isinstance(batch[-1], WaitingReported) else None
        kept = [each for each in batch if not isinstance(each, Delta | TurnEnded | WaitingReported)]
        self._is_begun = self._is_begun or not all(isinstance(each, _BEFORE) for each in batch)
        if kept:
            await self._keep(*(EventRecorded(turn, each) for each in kept))
        for each in kept:
            if isinstance(each, QuestionAsked):
                tasks.start_soon(self._await_answer, each, conversation)
        return next((each for each in batch if isinstance(each, TurnEnded)), None)

    @property
    def _is_unwanted(self) -> bool:
        return self._journal.kept.is_aborting or self._journal.kept.is_closed

    async def _end_if_unwanted(self, conversation: Conversation) -> None:
        """Interrupt the turn when it is aborted, repeatedly until it ends."""
        while not self._is_unwanted:
            await self._journal.changed()
        while True:
            with suppress(Failure):  # the turn itself reports failures
                await conversation.interrupt()
            await anyio.sleep(_INSIST)

    async def _await_answer(self, asked: QuestionAsked, conversation: Conversation) -> None:
        """Pass on the answer once it is durable; after the timeout, refuse."""
        with anyio.move_on_after(self._answer_longest):
            while asked in self._journal.kept.questions:
                await self._journal.changed()
        refused = (QuestionAnswered(asked.question, asked.refusal, AnswerSource.NOBODY),)
        while asked in self._journal.kept.questions:
            await self.keep(lambda: refused if asked in self._journal.session.questions else ())
            if asked in self._journal.kept.questions:
                await self._journal.changed()  # an answer is being written
        with suppress(Failure):  # the turn itself reports failures
            await conversation.answer(asked.question, self._journal.kept.answers[asked.question])

    async def _keep(self, *records: AnyRecord) -> None:
        await self.keep(lambda: records)

    def _told_of(self, failure: Failure) -> dict[str, object]:
        """Encode a failure with session, runner and time."""
        ids = Ids(session_id=self._journal.kept.id, runner_type=self._journal.kept.runner)
        return to_wire(failure.about(ids).stamped(self._clock.now()))

    async def _hang_up(self) -> None:
        self._conversation = None
        await self._stack.aclose()

    def _now(self) -> int:
        return int(self._clock.now() * 1000)


def _if_wanted(journal: SessionJournal, begun: TurnBegun) -> tuple[TurnBegun, ...]:
    """Return the record that begins a turn, unless its withdrawal is being written."""
    return (begun,) if any(each.turn == begun.turn for each in journal.session.waiting) else ()


def _has_ended(ended: TurnEnded) -> bool:
    return ended.failure is not None and ended.failure.get("code") == RunnerEnded.code
