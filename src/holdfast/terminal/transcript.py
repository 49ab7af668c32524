"""The transcript of a session: finished blocks, and running items.

What is over is a block, told once and never changed: it belongs to the scrollback, where nothing
that dies can take it back. What goes on is redrawn as it grows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

from holdfast.agent.model import (
    AnyConversationRecord,
    HeadMoved,
    HistoryCompacted,
    MessageAppended,
    Origin,
    UserMessage,
)
from holdfast.host import (
    DeltasReceived,
    Reconnected,
    Reconnecting,
    RecordReceived,
    Responsive,
    SessionState,
    SupervisionEvent,
    Unresponsive,
    WaitingSeen,
    fold,
)
from holdfast.host import JournalTrouble as Unkept
from holdfast.host.model import (
    AnswerSource,
    AnyRecord,
    AttemptStarted,
    EventRecorded,
    PromptQueued,
    QuestionAnswered,
    SessionEnded,
    SteeringAccepted,
    ToolsRepaired,
    TurnAborted,
    TurnBegun,
    TurnClosed,
)
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    MemoryRecorded,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
)
from holdfast.terminal.error_view import trouble_of
from holdfast.terminal.model import Block, Card, Note, Plan, Words, changed
from holdfast.terminal.model import Prompted as PromptBlock

_decode: Final = msgspec.json.Decoder(AnyConversationRecord).decode


class Earlier(NamedTuple):
    """A prompt, the history entry before it, and whether it is on the current branch."""

    text: str
    before: str  # the name of an entry; empty is the beginning
    is_here: bool = True


class Branches:
    """Collects branch points from the native agent's history records; ignores unreadable ones."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._prompts: dict[str, str] = {}  # by their entries
        self._head = ""

    def take(self, memo: bytes | msgspec.Raw) -> None:
        """Apply a record."""
        try:
            known = _decode(memo)
        except (msgspec.DecodeError, RecursionError):
            return
        match known:
            case MessageAppended(id, after, UserMessage(text, Origin.PERSON)):
                self._prompts[id] = text
                self._grow(id, after)
            case MessageAppended(id, after) | HistoryCompacted(id, after):
                self._grow(id, after)
            case HeadMoved(head):
                self._head = head
            case _:
                pass

    def prompts(self) -> list[Earlier]:
        """All prompts of all branches, the oldest first."""
        here = self._way()
        return [
            Earlier(text, self._parents[id], is_here=id in here)
            for id, text in self._prompts.items()
        ]

    def _grow(self, id: str, after: str) -> None:
        self._parents[id] = after
        self._head = id

    def _way(self) -> set[str]:
        found: set[str] = set()
        at = self._head
        while at and at not in found:
            found.add(at)
            at = self._parents.get(at, "")
        return found


def prompt_lines(prompts: list[Earlier], *, width: int, most: int = 20) -> list[str]:
    """The newest prompts with their numbers, one line each."""
    lines: list[str] = []
    for number, each in list(enumerate(prompts, 1))[-most:]:
        text = " ".join(each.text.split())
        line = f"{number:>3} {'' if each.is_here else '(another branch) '}{text}"
        lines.append(line if len(line) <= width else f"{line[: width - 1]}…")
    return lines


LIVE_MOST: Final = 16_384  # characters of what is not over that are kept to be shown
HELPER: Final = "sub_agent"  # the tool that has a part of the work done by another agent
HELPERS_MOST: Final = 20


@dataclass(slots=True)
class Live:
    """The tail of streamed text."""

    sort: DeltaKind
    text: str = ""

    def add(self, text: str) -> None:
        """Append text and drop all but the tail."""
        self.text = (self.text + text)[-LIVE_MOST:]


_NOTHING: Final = WaitingSeen("")


@dataclass(slots=True)
class Transcript:
    """Folds events into finished blocks and tracks running items."""

    session: SessionState = field(default_factory=SessionState)
    live: dict[str, Live] = field(default_factory=dict[str, Live])
    cards: dict[str, Card] = field(default_factory=dict[str, Card])
    plan: tuple[PlanStep, ...] = ()
    is_reconnecting: bool = False
    is_unresponsive: bool = False
    awaited: WaitingSeen = _NOTHING  # what the turn waits for, by the last answer to a ping
    unkept: dict[str, object] | None = None  # why the session cannot be written down now
    report: str = ""
    prompted: str = ""  # the last prompt
    model: str = ""  # that was chosen on the way
    effort: str = ""
    branches: Branches = field(default_factory=Branches)
    helpers: list[Card] = field(default_factory=list[Card])  # of the agent, that are done

    def take(self, seen: SupervisionEvent) -> list[Block]:
        """Apply an event; return the blocks that it finishes."""
        if isinstance(seen, RecordReceived | DeltasReceived):
            self.awaited = _NOTHING
        match seen:
            case RecordReceived(_, record):
                blocks = list(self._told(record))
                self.session = fold(self.session, (record,))
                return blocks
            case DeltasReceived(deltas):
                for delta in deltas:
                    self._grow(delta)
            case Unkept(failure):
                return self._unkept(failure)
            case Reconnecting():
                self.is_reconnecting = True
            case Reconnected():
                self.is_reconnecting = False
            case Unresponsive() | Responsive():
                self.is_unresponsive = isinstance(seen, Unresponsive)
            case WaitingSeen():
                self.awaited = seen
        return []

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return self.session.is_running

    @property
    def question(self) -> QuestionAsked | None:
        """The oldest open question, or None."""
        return self.session.questions[0] if self.session.questions else None

    def agents(self) -> list[Card]:
        """Subagents, finished ones first."""
        return [*self.helpers, *(card for card in self.cards.values() if card.tool == HELPER)]

    def _unkept(self, failure: dict[str, object] | None) -> list[Block]:
        was, self.unkept = self.unkept, failure
        if failure is None:
            return [Note("Everything is written down again.")] if was else []
        return [] if was else [trouble_of(failure)]

    def _grow(self, delta: Delta) -> None:
        if delta.sort is DeltaKind.OUTPUT and delta.item in self.cards:
            card = self.cards[delta.item]
            self.cards[delta.item] = card._replace(output=(card.output + delta.text)[-LIVE_MOST:])
        else:
            self.live.setdefault(delta.item, Live(delta.sort)).add(delta.text)

    def _told(self, record: AnyRecord) -> Iterator[Block]:
        match record:
            case EventRecorded(event=event):
                yield from self._heard(event)
            case PromptQueued(text=text, how=how):
                self.prompted = text or self.prompted
                self.model = how.get("model", self.model)
                self.effort = how.get("effort", self.effort)
            case TurnBegun(turn):
                waiting = (each for each in self.session.waiting if each.turn == turn)
                yield from (PromptBlock(words_of(each)) for each in waiting)
            case SteeringAccepted(text=text):
                yield PromptBlock(text, is_steering=True)
            case QuestionAnswered():
                yield self._answered(record)
            case TurnClosed():
                yield from self._closed(record)
            case _:
                yield from _note(record)

    def _answered(self, record: QuestionAnswered) -> Block:
        asked = next((e for e in self.session.questions if e.question == record.question), None)
        title = asked.title if asked else "The question"
        if record.by is not AnswerSource.PERSON:
            return Note(f"{title} — no answer: {record.answer or 'refused'}", True)
        return Note(f"{title} — {record.answer}")

    def _heard(self, event: AnyEvent) -> Iterator[Block]:
        match event:
            case TextCompleted(item, text) | ThinkingCompleted(item, text):
                self.live.pop(item, None)
                if text.strip():
                    yield Words(text, is_thought=isinstance(event, ThinkingCompleted))
            case PlanUpdated(steps):
                self.plan = steps
            case MemoryRecorded(memo):
                self.branches.take(memo)
            case NoticeIssued(text, failure):
                if failure:
                    yield from self._cut_off()
                yield trouble_of(failure) if failure and not text else Note(text, True)
            case _:
                yield from self._done(event)

    def _done(self, event: AnyEvent) -> Iterator[Block]:
        """The block of a tool call."""
        match event:
            case ToolStarted(item, tool, title):
                self.cards[item] = Card(title, tool)
            case FilesChanged(item, paths):
                if item in self.cards:
                    self.cards[item] = self.cards[item]._replace(paths=paths)
                else:  # its card is written already
                    yield Note(f"└ {changed(paths)}")
            case ToolEnded(item, is_ok, output, left_out, status):
                self.live.pop(item, None)
                card = self.cards.pop(item, Card(item))._replace(
                    is_ok=is_ok, output=output, left_out=left_out, status=status
                )
                if card.tool == HELPER:
                    self.helpers = [*self.helpers, card][-HELPERS_MOST:]
                yield card
            case _:
                pass

    def _cut_off(self) -> Iterator[Block]:
        """Flush streamed text: after a crash the next attempt starts a new message."""
        for live in self.live.values():
            if live.text.strip():
                yield Words(live.text, is_thought=live.sort is DeltaKind.THOUGHT)
                yield Note("(This was cut off, and is not kept.)", is_warning=True)
        self.live.clear()

    def _closed(self, closed: TurnClosed) -> Iterator[Block]:
        """Flush running items: no further event about them will come."""
        yield from self._cut_off()
        yield from (card._replace(is_ok=False) for card in self.cards.values())
        if any(step.progress is not PlanProgress.DONE for step in self.plan):
            yield Plan(self.plan)
        self.cards.clear()
        self.plan = ()
        self.report = closed.report or self.report
        if closed.failure is not None:
            yield trouble_of(closed.failure)
        elif closed.ending is TurnEnding.INTERRUPTED:
            yield Note("The turn was interrupted; what it has done so far is in the draft.")


def words_of(prompted: PromptQueued) -> str:
    """The text of a prompt; an empty one is a request to compact the history."""
    return prompted.text or "/compact"


def _note(record: AnyRecord) -> Iterator[Note]:
    """Events that are shown as a notice."""
    match record:
        case ToolsRepaired(items=items):
            count = f"{len(items)} step" + ("s were" if len(items) > 1 else " was")
            yield Note(f"{count} interrupted, and may or may not have completed.", is_warning=True)
        case AttemptStarted(reason=reason) if reason:
            yield Note(f"A new process has taken this session up: {reason}.", is_warning=True)
        case TurnAborted():
            yield Note("Ending the turn.")
        case SessionEnded():
            yield Note("The session was ended; the conversation is kept.")
        case _:
            pass
