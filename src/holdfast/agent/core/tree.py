"""Where a conversation stands, by all that was kept of it: a tree of messages, and its head.

What cannot be read, or makes no sense, is skipped and counted. An entry whose forerunner was lost
follows what was the head when it was kept: one damaged record loses nothing but itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.agent.core.line import Line
from holdfast.agent.model import (
    AnyMemo,
    Compacted,
    Dequeued,
    Entered,
    Mended,
    ModelMessage,
    Moved,
    Origin,
    Queued,
    Spent,
    ToolBegun,
    ToolMessage,
    UserMessage,
)

SUMMARY: Final = """\
[What follows is a summary of the conversation so far, in place of its older messages. It is not a
new request: go on with what was asked for.]

"""

_decode = msgspec.json.Decoder(AnyMemo).decode


class Tree:
    """A conversation; it grows by what is kept of it."""

    def __init__(self) -> None:
        self.head = ""
        self.entries: dict[str, Entered | Compacted] = {}
        self.queued: dict[str, str] = {}  # what the model has not been told yet, in order
        self.begun: set[str] = set()  # calls that may have done something
        self.calls: set[str] = set()  # every name that a call was ever given
        self.mended: dict[str, str] = {}
        self.input = self.cached = self.output = 0  # tokens, of all answers
        self.cost_usd: float | None = None
        self.skipped = 0  # that could not be read, or made no sense
        self.measured: int | None = None  # tokens of the line at the last answer, as it was billed
        self.chars_since = 0
        self._parents: dict[str, str] = {}
        self._line: Line | None = None
        self._answer = ""  # the last one that nobody has paid for yet

    @property
    def line(self) -> Line:
        """What a model is told, up to the head."""
        if self._line is None:
            self._line = self._drawn()
        return self._line

    @property
    def estimate(self) -> int:
        """About how many tokens the line has, without what is told besides."""
        if self.measured is None:
            return _tokens(self.line.chars)
        return self.measured + _tokens(self.chars_since)

    def way(self) -> Iterator[Entered | Compacted]:
        """All entries on the way to the head, the newest first, also those left out of the line."""
        at = self.head
        while at:
            entry = self.entries[at]
            yield entry
            at = self._parents[at]

    def result(self, call: str) -> str | None:
        """The whole result of a call, wherever in the tree it is."""
        for entry in reversed(self.entries.values()):
            message = entry.message if isinstance(entry, Entered) else None
            if isinstance(message, ToolMessage) and message.call == call:
                return message.text
        return None

    def read(self, memo: msgspec.Raw | bytes) -> None:
        """Take up what was kept, as it was written down; what cannot be read is counted."""
        try:
            taken = _decode(memo)
        except (msgspec.DecodeError, RecursionError):
            self.skipped += 1
        else:
            self.take(taken)

    def take(self, memo: AnyMemo) -> None:
        """Take up what was kept; what makes no sense is counted."""
        if isinstance(memo, Entered):  # these are the most, and a conversation may have thousands
            self._enter(memo)
        elif isinstance(memo, ToolBegun):
            self.begun.add(memo.call)
        elif isinstance(memo, Spent):
            self._pay(memo)
        else:
            self._take_rare(memo)

    def _take_rare(self, memo: Compacted | Moved | Mended | Queued | Dequeued) -> None:
        match memo:
            case Compacted():
                if self._grow(memo):
                    self._redraw()
            case Moved(head):
                if head and head not in self.entries:
                    self.skipped += 1
                elif head != self.head:
                    self.head = head
                    self._redraw()
            case Mended(call, text):
                self.mended[call] = text
                if self._line is not None:
                    self._line.mend(call)
            case Queued(id, text):
                self.queued[id] = text
            case Dequeued(id):
                self.queued.pop(id, None)

    def _enter(self, memo: Entered) -> None:
        message, is_next = memo.message, memo.after == self.head
        if not self._grow(memo):
            return
        self.chars_since += len(message.text)
        if isinstance(message, ModelMessage):
            self._answer = memo.id
            for each in message.calls:
                self.calls.add(each.id)
                self.chars_since += len(each.arguments)
        if not is_next:
            self._redraw()
        elif self._line is not None:
            self._line.add(memo.id, message)

    def _grow(self, memo: Entered | Compacted) -> bool:
        id = memo.id
        if not id or id in self.entries:
            self.skipped += 1
            return False
        after = memo.after
        if after and after not in self.entries:
            self.skipped += 1
            after = self.head
        self.entries[id] = memo
        self._parents[id] = after
        self.head = id
        return True

    def _redraw(self) -> None:
        self._line = self.measured = None
        self.chars_since = 0

    def _pay(self, memo: Spent) -> None:
        tokens, cost = memo.tokens, memo.cost_usd
        self.input += tokens.input
        self.cached += tokens.cached
        self.output += tokens.output
        if cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost
        if tokens.input and self._answer == self.head:  # paid for what has just been entered
            self.measured, self.chars_since = tokens.input + tokens.output, 0
            self._answer = ""

    def _drawn(self) -> Line:
        """The way to the head, with the newest summary in place of what is before it."""
        line = Line(self.begun, self.mended)
        chain, summary = self._chain()
        if summary is not None:
            line.add(summary.id, UserMessage(SUMMARY + summary.summary, Origin.NOTICE))
        for entry in reversed(chain):
            line.add(entry.id, entry.message)
        line.settle()
        return line

    def _chain(self) -> tuple[list[Entered], Compacted | None]:
        chain: list[Entered] = []
        summary: Compacted | None = None
        for entry in self.way():
            if isinstance(entry, Entered):
                chain.append(entry)
            elif summary is None:
                summary = entry
            if summary is not None and summary.keeps in ("", entry.id):
                return chain, summary
        return chain, None  # where a summary begins was lost, so that it stands for nothing


def _tokens(chars: int) -> int:
    return chars // 4
