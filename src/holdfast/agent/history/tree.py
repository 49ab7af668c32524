"""Where a conversation stands, by all that was kept of it: a tree of messages, and its head.

What cannot be read, or makes no sense, is skipped and counted. An entry whose forerunner was lost
follows what was the head when it was kept: one damaged record loses nothing but itself.

The way to the head as a model is told it: valid by construction, whatever was kept of it.

Every call is followed by exactly one result before anything else is said. A result that nobody
asked for, or that was given before, is left out; a call without one is given a word in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Final

import msgspec
from msgspec.structs import replace

from holdfast.agent.model import (
    AnyConversationRecord,
    AnyMessage,
    HeadMoved,
    HistoryCompacted,
    MessageAppended,
    ModelMessage,
    Origin,
    PromptMessage,
    SteeringDequeued,
    SteeringQueued,
    ToolCallRepaired,
    ToolCallStarted,
    ToolMessage,
    UsageRecorded,
    UserMessage,
)
from holdfast.agent.text import receipt

INTERRUPTED: Final = (
    "Interrupted: the agent was stopped while this ran. It may or may not have completed; find "
    "out before you repeat it."
)
NOT_STARTED: Final = "Interrupted: the agent was stopped before this. It was not started."


def missing_result(call: str, begun: Set[str]) -> str:
    """What a model is told in place of a result, if nobody knows more of the call."""
    return INTERRUPTED if call in begun else NOT_STARTED


class PromptHistory:
    """What a model is told of a conversation, in order; it grows at its end."""

    def __init__(self, begun: Set[str], mended: Mapping[str, str]) -> None:
        self.said: list[PromptMessage] = []
        self.chars = 0
        self.open: dict[str, None] = {}  # calls that have no result yet, in order
        self.gaps: list[str] = []  # calls that others came after, and nobody has mended
        self.strays = 0  # results that belong to no call
        self._begun, self._mended = begun, mended
        self._known: set[str] = set()

    def add(self, id: str, message: AnyMessage) -> None:
        """Say this, too."""
        if isinstance(message, ToolMessage):
            self._add_result(id, message)
            return
        if self.open:
            self._close()
        if isinstance(message, ModelMessage):
            self._add_answer(id, message)
        else:
            self._say(id, message, len(message.text))

    def mend(self, call: str) -> None:
        """Take up that a call has a word in place of its result now."""
        if call in self.open:
            self._answer_for(call)
        elif call in self.gaps:
            self.gaps.remove(call)

    def settle(self) -> None:
        """Take up every such word for calls at the end."""
        for call in tuple(self.open):
            if call in self._mended:
                self._answer_for(call)

    def _add_answer(self, id: str, message: ModelMessage) -> None:
        calls = message.calls
        if calls:
            new = tuple({each.id: each for each in calls if each.id not in self._known}.values())
            if len(new) < len(calls):
                message, calls = replace(message, calls=new), new
        if not calls and not message.text:
            return  # no format knows an answer that says nothing
        chars = len(message.text)
        for each in calls:
            self._known.add(each.id)
            self.open[each.id] = None
            chars += len(each.arguments) + len(each.tool)
        self._say(id, message, chars)

    def _add_result(self, id: str, message: ToolMessage) -> None:
        if message.call not in self.open:
            self.strays += 1
            return
        del self.open[message.call]
        told = receipt(message.call, message.text)
        if told is not message.text:
            message = replace(message, text=told)
        self._say(id, message, len(told))

    def _close(self) -> None:
        for call in tuple(self.open):
            if call not in self._mended:
                self.gaps.append(call)
            self._answer_for(call)

    def _answer_for(self, call: str) -> None:
        del self.open[call]
        text = self._mended.get(call) or missing_result(call, self._begun)
        self._say(f"{call}:mended", ToolMessage(call, text, is_error=True), len(text))

    def _say(self, id: str, message: AnyMessage, chars: int) -> None:
        self.said.append(PromptMessage(id, message))
        self.chars += chars


SUMMARY: Final = """\
[What follows is a summary of the conversation so far, in place of its older messages. It is not a
new request: go on with what was asked for.]

"""

_decode = msgspec.json.Decoder(AnyConversationRecord).decode


class ConversationTree:
    """A conversation; it grows by what is kept of it."""

    def __init__(self) -> None:
        self.head = ""
        self.entries: dict[str, MessageAppended | HistoryCompacted] = {}
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
        self._line: PromptHistory | None = None
        self._answer = ""  # the last one that nobody has paid for yet

    @property
    def line(self) -> PromptHistory:
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

    def way(self) -> Iterator[MessageAppended | HistoryCompacted]:
        """All entries on the way to the head, the newest first, also those left out of the line."""
        at = self.head
        while at:
            entry = self.entries[at]
            yield entry
            at = self._parents[at]

    def result(self, call: str) -> str | None:
        """The whole result of a call, wherever in the tree it is."""
        for entry in reversed(self.entries.values()):
            message = entry.message if isinstance(entry, MessageAppended) else None
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

    def take(self, memo: AnyConversationRecord) -> None:
        """Take up what was kept; what makes no sense is counted."""
        if isinstance(
            memo, MessageAppended
        ):  # these are the most, and a conversation may have thousands
            self._enter(memo)
        elif isinstance(memo, ToolCallStarted):
            self.begun.add(memo.call)
        elif isinstance(memo, UsageRecorded):
            self._pay(memo)
        else:
            self._take_rare(memo)

    def _take_rare(
        self,
        memo: HistoryCompacted | HeadMoved | ToolCallRepaired | SteeringQueued | SteeringDequeued,
    ) -> None:
        match memo:
            case HistoryCompacted():
                if self._grow(memo):
                    self._redraw()
            case HeadMoved(head):
                if head and head not in self.entries:
                    self.skipped += 1
                elif head != self.head:
                    self.head = head
                    self._redraw()
            case ToolCallRepaired(call, text):
                self.mended[call] = text
                if self._line is not None:
                    self._line.mend(call)
            case SteeringQueued(id, text):
                self.queued[id] = text
            case SteeringDequeued(id):
                self.queued.pop(id, None)

    def _enter(self, memo: MessageAppended) -> None:
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

    def _grow(self, memo: MessageAppended | HistoryCompacted) -> bool:
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

    def _pay(self, memo: UsageRecorded) -> None:
        tokens, cost = memo.tokens, memo.cost_usd
        self.input += tokens.input
        self.cached += tokens.cached
        self.output += tokens.output
        if cost is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost
        if tokens.input and self._answer == self.head:  # paid for what has just been entered
            self.measured, self.chars_since = tokens.input + tokens.output, 0
            self._answer = ""

    def _drawn(self) -> PromptHistory:
        """The way to the head, with the newest summary in place of what is before it."""
        line = PromptHistory(self.begun, self.mended)
        chain, summary = self._chain()
        if summary is not None:
            line.add(summary.id, UserMessage(SUMMARY + summary.summary, Origin.NOTICE))
        for entry in reversed(chain):
            line.add(entry.id, entry.message)
        line.settle()
        return line

    def _chain(self) -> tuple[list[MessageAppended], HistoryCompacted | None]:
        chain: list[MessageAppended] = []
        summary: HistoryCompacted | None = None
        for entry in self.way():
            if isinstance(entry, MessageAppended):
                chain.append(entry)
            elif summary is None:
                summary = entry
            if summary is not None and summary.keeps in ("", entry.id):
                return chain, summary
        return chain, None  # where a summary begins was lost, so that it stands for nothing


def _tokens(chars: int) -> int:
    return chars // 4


# Decide what is told in place of results that never came, such that any history is valid.

ABORTED: Final = "[Aborted by user]"
_BEGUN: Final = " It had begun; it may or may not have completed."


def repairs(tree: ConversationTree, *, is_aborted: bool = False) -> tuple[ToolCallRepaired, ...]:
    """What is to be kept for every call on the way that has no result; nothing, if all have one.

    It is said of a history that nobody is working on. `is_aborted`: the person has just stopped
    the calls that are open.
    """
    line = tree.line
    lost = tuple(ToolCallRepaired(call, missing_result(call, tree.begun)) for call in line.gaps)
    if is_aborted:
        return lost + tuple(
            ToolCallRepaired(call, ABORTED + _BEGUN if call in tree.begun else ABORTED)
            for call in line.open
        )
    return lost + tuple(
        ToolCallRepaired(call, missing_result(call, tree.begun)) for call in line.open
    )


def told(count: int) -> str:
    """What the person is told of repairs."""
    calls = "1 tool call" if count == 1 else f"{count} tool calls"
    return f"{calls} had no result; the model is told that and why."
