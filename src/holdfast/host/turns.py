"""Carry out the turns of a session, one after the other, and write down what comes of them."""

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
from holdfast.host.journal import Book
from holdfast.host.model import (
    Answered,
    AnyRecord,
    Happened,
    Prompted,
    Published,
    Publishing,
    Repaired,
    Revised,
    Steer,
    Steered,
    TurnBegun,
    TurnClosed,
    Who,
)
from holdfast.host.ports import Revisited, Workshop
from holdfast.host.session import decide, next_turn
from holdfast.runners import Conversation, Memory
from holdfast.runners.failures import OptionUnknown, RunnerEnded, SessionUnknown
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Awaiting,
    Delta,
    Ending,
    Noticed,
    Said,
    SessionKnown,
    TurnEnded,
)
from holdfast.world import Clock, companions

# Tell an agent that has forgotten a conversation what was said in it.

RETOLD_CHARS_MAX: Final = 200_000  # of what was said; the newest of it
_HEAD: Final = (
    "You have taken part in this conversation before, and no longer know it. This is what was "
    "said{cut}; what you did is in the files. Go on from here.\n\n"
)
_CUT: Final = ", but for its beginning"
_NOW: Final = "Person, now: "


def retold(records: Iterable[AnyRecord], prompted: Prompted) -> str:
    """A prompt with all that was said before it; the prompt alone if nothing was."""
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


def _words(record: AnyRecord, prompted: Prompted) -> str:
    match record:
        case Prompted(turn=turn, text=text) if turn < prompted.turn:
            return f"Person: {text}\n\n"
        case Steered(text=text):
            return f"Person: {text}\n\n"
        case Happened(event=Said(text=text)):
            return f"You: {text}\n\n"
        case _:
            return ""


# Go on with an agent that has forgotten a conversation: it is told again what was said.

_decoder: msgspec.json.Decoder[AnyRecord] = msgspec.json.Decoder(AnyRecord)


def forgotten(unknown: SessionUnknown) -> Noticed:
    """What the person is told of it."""
    text = "The agent no longer knows this conversation. It is told again what was said."
    return Noticed(text, to_wire(unknown))


async def recalled(book: Book, prompted: Prompted) -> str:
    """A prompt for an agent that knows nothing: with all that was said before it."""
    records: list[AnyRecord] = []
    last = book.seq
    async with aclosing(book.follow(0)) as pages:
        async for page in pages:
            records += [_decoder.decode(line.data) for line in page]
            if page[-1].seq >= last:
                break
    return retold(records, prompted)


ANSWER_LONGEST: Final = 24 * 3600.0  # that a question waits for a person
_ROOM_AGAIN: Final = 1.0  # between two tries to write what found no room
_INSIST: Final = 1.0  # between two interrupts of a turn that does not end

_BEFORE: Final = (SessionKnown, TurnEnded, Awaiting)  # what an agent tells that has not begun


class Converser(Protocol):
    """Whoever carries turns out; all that this needs may be looked for when there is a turn."""

    @property
    def name(self) -> str:
        """The word that a person chooses it by."""
        ...

    @property
    def options(self) -> tuple[str, ...]:
        """How it can be told to take a turn."""
        ...

    def converse(
        self, session: str | None, memory: Memory
    ) -> AbstractAsyncContextManager[Conversation]:
        """Begin a conversation, or continue one by the word of an earlier `SessionKnown`."""
        ...


Told = Callable[[Sequence[Delta]], None]
"""Is told what is only shown, at once; it must be quick and must not raise."""

Troubled = Callable[[Failure | None], None]
"""Is told what keeps a session from being written down, and None when nothing does any more."""


EndEarlier = Callable[[], Awaitable[Sequence[str]]]
"""Ends all that earlier hosts have started; returns the commands of what could not be ended."""


async def nothing_earlier() -> Sequence[str]:
    """Earlier hosts have started nothing that is not in this process."""
    return ()


class Turns:
    """Takes turn after turn with a runner; the person's words reach the one that runs."""

    def __init__(  # noqa: PLR0913  # only the host makes one, all by keyword
        self,
        *,
        book: Book,
        runner: Converser,
        workshop: Workshop,
        clock: Clock,
        told: Told,
        troubled: Troubled,
        answer_longest: float = ANSWER_LONGEST,
        end_earlier: EndEarlier = nothing_earlier,
        stopped_by: Callable[[int], str] = lambda _: "",
    ) -> None:
        self._book = book
        self._runner = runner
        self._workshop, self._clock = workshop, clock
        self._told, self._troubled = told, troubled
        self._answer_longest = answer_longest
        self._end_earlier, self._stopped_by = end_earlier, stopped_by
        self._talk: Conversation | None = None
        self._stack = AsyncExitStack()
        self._is_begun = False  # the running turn has told of something that it did
        self._tasks: TaskGroup | None = None  # while turns are taken
        self._steering: set[str] = set()  # what may still be taken
        self._progressed = anyio.current_time()
        self._awaiting: Awaiting | None = None  # told since the last thing that happened

    @property
    def idle_for(self) -> float:
        """For how many seconds the running turn has told nothing; 0 while none runs."""
        is_busy = self._book.session.is_running and not self._book.session.questions
        return anyio.current_time() - self._progressed if is_busy else 0.0

    @property
    def awaiting(self) -> tuple[str, float] | None:
        """What the running turn waits for, and for how many seconds, as far as its agent says."""
        if self._awaiting is None or not self.idle_for:
            return None
        return self._awaiting.what, self._awaiting.seconds + self.idle_for

    async def run(self) -> None:
        """End a turn that was left, then take every one that is wanted until the session closes."""
        async with companions() as self._tasks, self._stack:  # what is begun last ends first
            if self._book.kept.attempt > 1:
                await self._end_agents()
            if self._book.kept.is_running:
                await self._end_left()
            while not self._book.kept.is_closed:
                begun = next_turn(self._book.kept, at_ms=self._now())
                if begun is None or not _if_wanted(self._book, begun):
                    await self._book.stirred()
                    continue
                prompted = self._book.kept.waiting[0]
                await self.keep(partial(_if_wanted, self._book, begun))
                if self._book.kept.turn == begun.turn:
                    await self._take(prompted)

    def check(self, how: Mapping[str, str]) -> None:
        """Raise OptionUnknown if the runner could not be told how a turn is to be taken."""
        for name in how:
            options = self._runner.options
            if name not in options:
                raise OptionUnknown(option=name, runner=self._runner.name, known=options)

    async def steer(self, command: Steer) -> None:
        """Add to what the running turn was asked, once; what it does not take waits for its own.

        It is done whatever becomes of the caller: what a turn was told is written down.
        """
        if self._tasks is not None and command.id not in self._steering:
            self._steering.add(command.id)
            self._tasks.start_soon(self._steer, command)
        while command.id in self._steering:
            await self._book.stirred()

    async def keep(self, decided: Callable[[], Sequence[AnyRecord]]) -> None:
        """Write down what is decided, however long the disk has no room for it.

        What happens meanwhile waits: nobody acts on what is not kept. It is decided anew each time.
        """
        is_troubled = False
        while records := decided():
            try:
                await self._book.write(*records)
                break
            except Failure as failure:
                if not failure.retryable:
                    raise
                self._troubled(failure)
                is_troubled = True
                await anyio.sleep(_ROOM_AGAIN)
        if is_troubled:
            self._troubled(None)

    async def _steer(self, command: Steer) -> None:
        talk, is_taken = self._talk, False
        try:
            with suppress(Failure):  # what could not be done or written is still to be done
                if talk is not None and command.id not in self._book.session.commands:
                    is_taken = await talk.steer(command.text)
                is_new = decide(self._book.session, command, at_ms=self._now())
                if is_new and not is_taken:
                    await self._book.write(*is_new)
            if is_taken:
                await self._keep(Steered(command.id, self._book.session.turn, command.text))
        finally:
            self._steering.discard(command.id)
            self._book.stir()

    async def _take(self, prompted: Prompted) -> None:
        turn, ended = prompted.turn, TurnEnded(Ending.FAILED)
        made: Revisited | None = None
        try:
            with boundary("host.turn"):
                await self._workshop.prepare()
                ended = await self._perform(prompted)
                made = await self._workshop.revise(f"turn {turn}")
                if made is not None:
                    await self._keep(Revised(turn, made.revision, made.checkpoint))
        except Failure as failure:
            ended = TurnEnded(Ending.FAILED, self._told_of(failure))
        if ended.failure is not None:
            ended = self._stopped() or ended
        if ended.failure is not None:
            await self._hang_up()  # the next turn begins with an agent in its right mind
        elif prompted.is_in_place and ended.ending is Ending.COMPLETED:
            await self._keep(Publishing(turn, f"{self._book.kept.id}/{turn}"))
        await self._close(turn, ended, made)

    async def _end_agents(self) -> None:
        """End the agents of earlier hosts, before anybody is told that their turn is over.

        They would go on unseen: ask the model, and write into the draft.
        """
        left: Sequence[str] = ()
        with suppress(Failure), boundary("host.end_earlier"):
            left = await self._end_earlier()
        if left:
            text = f"These processes of an earlier agent could not be ended: {'; '.join(left)}"
            await self._keep(Happened(self._book.kept.turn, Noticed(text)))

    async def _end_left(self) -> None:
        """End the turn that the host before us left; if it was to publish it, that is done."""
        left = self._book.kept
        ended = TurnEnded(Ending.COMPLETED)
        if not left.is_done:
            crashed = HostCrashed(session=left.id, turn=left.turn, reason=left.reason)
            told = self._told_of(crashed.during("host.turn"))
            ended = self._stopped() or TurnEnded(Ending.FAILED, told)
        await self._close(left.turn, ended, None)

    def _stopped(self) -> TurnEnded | None:
        """How the running turn ended, if everything here was ended on purpose since it began."""
        turn = self._book.kept
        by = self._stopped_by(turn.turn_at_ms)
        if not by:
            return None
        stopped = HostStopped(session=turn.id, turn=turn.turn, by=by)
        return TurnEnded(Ending.INTERRUPTED, self._told_of(stopped.during("host.turn")))

    async def _close(self, turn: int, ended: TurnEnded, made: Revisited | None) -> None:
        if self._book.kept.publishing is not None:
            ended = await self._publish(turn, self._book.kept.publishing, ended)
        records: list[AnyRecord] = []
        if self._book.session.tools:
            records.append(Repaired(turn, self._book.session.tools))
        closed = TurnClosed(turn, ended.ending, self._now(), ended.failure)
        with suppress(Failure), boundary("host.report"):  # all it would say is in the journal
            closed = replace(closed, report=await self._workshop.report(closed, made))
        await self._keep(*records, closed)

    async def _publish(self, turn: int, key: str, ended: TurnEnded) -> TurnEnded:
        """Let the project have it; what keeps it from that is said with the end of the turn."""
        try:
            with boundary("host.publish"):
                done = await self._workshop.publish(key)
        except Failure as failure:
            return replace(ended, failure=self._told_of(failure))
        await self._keep(Published(turn, done.paths, done.checkpoint))
        return ended

    async def _perform(self, prompted: Prompted) -> TurnEnded:
        """Take a turn; an agent that has ended since the last one is not worth a word."""
        is_used = self._talk is not None
        ended = await self._converse(prompted)
        if is_used and not self._is_begun and _has_ended(ended):
            await self._hang_up()
            ended = await self._converse(prompted)
        return ended

    async def _converse(self, prompted: Prompted) -> TurnEnded:
        self._progressed = anyio.current_time()
        self._is_begun = False
        self._awaiting = None
        text, talk = await self._meet(prompted)
        if self._is_unwanted:
            return TurnEnded(Ending.INTERRUPTED)
        turn = talk.take_turn(text, prompted.how)
        async with companions() as tasks, aclosing(turn) as batches:
            tasks.start_soon(self._end_if_unwanted, talk)
            async for batch in batches:
                self._progressed = anyio.current_time()
                ended = await self._heed(prompted.turn, batch, talk, tasks)
                if ended is not None:
                    return ended
        raise AssertionError("a turn tells its end")

    async def _meet(self, prompted: Prompted) -> tuple[str, Conversation]:
        """What to ask, and an agent that then knows what was said before, also if it forgot."""
        text, session = prompted.text, self._book.session.runner_session
        if self._talk is None:
            try:
                self._talk = await self._begin(session)
            except SessionUnknown as unknown:
                self._talk = await self._begin(None)
                await self._keep(Happened(prompted.turn, forgotten(unknown)))
                text = await recalled(self._book, prompted)
        return text, self._talk

    async def _begin(self, session: str | None) -> Conversation:
        conversation = self._runner.converse(session, self._book.remembered)
        return await self._stack.enter_async_context(conversation)

    async def _heed(
        self, turn: int, batch: Sequence[AnyEvent], talk: Conversation, tasks: TaskGroup
    ) -> TurnEnded | None:
        if deltas := [each for each in batch if isinstance(each, Delta)]:
            self._told(deltas)
        self._awaiting = batch[-1] if batch and isinstance(batch[-1], Awaiting) else None
        kept = [each for each in batch if not isinstance(each, Delta | TurnEnded | Awaiting)]
        self._is_begun = self._is_begun or not all(isinstance(each, _BEFORE) for each in batch)
        if kept:
            await self._keep(*(Happened(turn, each) for each in kept))
        for each in kept:
            if isinstance(each, Asked):
                tasks.start_soon(self._await_answer, each, talk)
        return next((each for each in batch if isinstance(each, TurnEnded)), None)

    @property
    def _is_unwanted(self) -> bool:
        return self._book.kept.is_aborting or self._book.kept.is_closed

    async def _end_if_unwanted(self, talk: Conversation) -> None:
        """Interrupt the turn as soon as the person wants that, and until it has ended."""
        while not self._is_unwanted:
            await self._book.stirred()
        while True:
            with suppress(Failure):  # whatever is wrong, the turn tells
                await talk.interrupt()
            await anyio.sleep(_INSIST)

    async def _await_answer(self, asked: Asked, talk: Conversation) -> None:
        """Pass the answer on once it is kept; if none comes in time, refuse for the person."""
        with anyio.move_on_after(self._answer_longest):
            while asked in self._book.kept.questions:
                await self._book.stirred()
        refused = (Answered(asked.question, asked.refusal, Who.NOBODY),)
        while asked in self._book.kept.questions:
            await self.keep(lambda: refused if asked in self._book.session.questions else ())
            if asked in self._book.kept.questions:
                await self._book.stirred()  # an answer is on its way to the disk
        with suppress(Failure):  # whatever is wrong, the turn tells
            await talk.answer(asked.question, self._book.kept.answers[asked.question])

    async def _keep(self, *records: AnyRecord) -> None:
        await self.keep(lambda: records)

    def _told_of(self, failure: Failure) -> dict[str, object]:
        """A failure as it is written down: where, when and of which session."""
        ids = Ids(session_id=self._book.kept.id, runner_type=self._book.kept.runner)
        return to_wire(failure.about(ids).stamped(self._clock.now()))

    async def _hang_up(self) -> None:
        self._talk = None
        await self._stack.aclose()

    def _now(self) -> int:
        return int(self._clock.now() * 1000)


def _if_wanted(book: Book, begun: TurnBegun) -> tuple[TurnBegun, ...]:
    """What begins a turn, unless somebody is about to take it back: that may not be kept yet."""
    return (begun,) if any(each.turn == begun.turn for each in book.session.waiting) else ()


def _has_ended(ended: TurnEnded) -> bool:
    return ended.failure is not None and ended.failure.get("code") == RunnerEnded.code
