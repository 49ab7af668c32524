"""Make a session's records of a conversation that another tool has written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from holdfast.host.model import (
    AnyRecord,
    EventRecorded,
    PromptQueued,
    SessionOpened,
    ToolsRepaired,
    TurnBegun,
    TurnClosed,
)
from holdfast.runners.model import (
    SessionKnown,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
)

TEXT_MOST: Final = 100_000  # characters of one text
_UNASKED: Final = "(It went on by itself.)"

Told = TextCompleted | ThinkingCompleted | ToolStarted | ToolEnded


@dataclass(frozen=True, slots=True)
class About:
    """What a conversation is called, and where it was held."""

    id: str
    directory: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The person wanted something."""

    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Did:
    """The agent said or did something."""

    event: Told
    at_ms: int


@dataclass(frozen=True, slots=True)
class Over:
    """A turn was said to be over."""

    ending: TurnEnding
    at_ms: int


Step = Asked | Did | Over


def records_of(
    opened: SessionOpened, steps: Iterable[Step], *, known: str | None
) -> Iterator[AnyRecord]:
    """All records of a session in which this was said and done, every turn of it over.

    `known` is the word by which its runner goes on with it, if one can.
    """
    yield opened
    if known is not None:
        yield EventRecorded(0, SessionKnown(known))
    telling = _Telling()
    for step in steps:
        yield from telling.after(step)
    yield from telling.closed()


def moment(text: str) -> int:
    """Milliseconds since the epoch of a time as tools write it; 0 for what is none."""
    try:
        return max(int(datetime.fromisoformat(text).timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        return 0


def shortened(text: str) -> str:
    """A text of bounded length, which says what is left out."""
    left_out = len(text) - TEXT_MOST
    return text if left_out <= 0 else f"{text[:TEXT_MOST]}\n[{left_out} characters left out]"


def output(item: str, text: str, *, is_ok: bool, status: int | None = None) -> ToolEnded:
    """What a tool came to, of bounded length."""
    left_out = max(len(text) - TEXT_MOST, 0)
    return ToolEnded(item, is_ok, text[:TEXT_MOST], left_out, status)


@dataclass(slots=True)
class _Telling:
    """Converter state: the current turn and its open tool calls."""

    turn: int = 0
    is_open: bool = False
    asked: str | None = None  # what nothing was done about yet
    has_answered: bool = False  # its last words were to the person
    at_ms: int = 0
    tools: dict[str, None] = field(default_factory=dict[str, None])  # begun and not ended

    def after(self, step: Step) -> Iterator[AnyRecord]:
        """What is to be written down for one more step."""
        if isinstance(step, Asked) and self.is_open and step.text == self.asked:
            return  # some write the same words down in two forms
        self.at_ms = step.at_ms or self.at_ms
        match step:
            case Asked(text):
                yield from self.closed()
                yield from self._begun(text)
            case Did(event):
                if not self.is_open:
                    yield from self._begun(_UNASKED)
                yield from self._told(event)
            case Over(ending):
                yield from self.closed(ending)

    def closed(self, ending: TurnEnding | None = None) -> Iterator[AnyRecord]:
        """The end of a turn; without a recorded ending, completed if the agent answered."""
        if not self.is_open:
            return
        if self.tools:
            yield ToolsRepaired(self.turn, tuple(self.tools))
        usual = TurnEnding.COMPLETED if self.has_answered else TurnEnding.INTERRUPTED
        yield TurnClosed(self.turn, ending or usual, self.at_ms)
        self.is_open = self.has_answered = False
        self.tools.clear()

    def _begun(self, text: str) -> Iterator[AnyRecord]:
        self.turn, self.is_open, self.asked = self.turn + 1, True, text
        yield PromptQueued(f"imported-{self.turn}", self.turn, shortened(text), self.at_ms)
        yield TurnBegun(self.turn, self.at_ms)

    def _told(self, event: Told) -> Iterator[AnyRecord]:
        self.asked, self.has_answered = None, isinstance(event, TextCompleted)
        match event:
            case ToolStarted(item):
                self.tools[item] = None
            case ToolEnded(item):
                if item not in self.tools:
                    return
                del self.tools[item]
            case TextCompleted() | ThinkingCompleted():
                pass
        yield EventRecorded(self.turn, event)
