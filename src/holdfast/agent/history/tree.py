"""The conversation tree, rebuilt from records, and the history that a model receives.

    records ──take()──▶ ConversationTree ──line──▶ PromptHistory ──▶ ModelRequest

The tree is a fold over the records of the journal. `MessageAppended` and `HistoryCompacted` add an
entry below `after` and move the head to it; `HeadMoved` only moves the head. The conversation is
the path from the root to the head; everything else is a branch.

`PromptHistory` is that path as a provider accepts it, valid by construction:

- every tool call is followed by exactly one result before any other message,
- results without a call, and duplicate results, are left out,
- a call without a result gets a substitute, from a `ToolCallRepaired` record if there is one.

Damage is local: a record that cannot be decoded or does not make sense is skipped and counted. An
entry whose parent was lost is attached to the head at that point of the journal.

Caveat: the path is cached and extended in place. Any record that does not extend the head must call
`_redraw`.
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
    """Return the substitute for a result that was never recorded."""
    return INTERRUPTED if call in begun else NOT_STARTED


class PromptHistory:
    """The messages of a request, in order; messages can only be appended."""

    def __init__(self, begun: Set[str], repaired: Mapping[str, str]) -> None:
        self.said: list[PromptMessage] = []
        self.chars = 0
        self.open: dict[str, None] = {}  # ids of calls without a result, in order
        self.gaps: list[str] = []  # ids of calls that a later message left without result or repair
        self.strays = 0  # results without a call
        self._begun, self._repaired = begun, repaired
        self._known: set[str] = set()

    def add(self, id: str, message: AnyMessage) -> None:
        """Append a message, and close calls that are still open."""
        if isinstance(message, ToolMessage):
            self._add_result(id, message)
            return
        if self.open:
            self._close()
        if isinstance(message, ModelMessage):
            self._add_answer(id, message)
        else:
            self._say(id, message, len(message.text))

    def repair(self, call: str) -> None:
        """Use the repair of a call in place of its result."""
        if call in self.open:
            self._answer_for(call)
        elif call in self.gaps:
            self.gaps.remove(call)

    def settle(self) -> None:
        """Apply known repairs to the calls at the end."""
        for call in tuple(self.open):
            if call in self._repaired:
                self._answer_for(call)

    def _add_answer(self, id: str, message: ModelMessage) -> None:
        calls = message.calls
        if calls:
            new = tuple({each.id: each for each in calls if each.id not in self._known}.values())
            if len(new) < len(calls):
                message, calls = replace(message, calls=new), new
        if not calls and not message.text:
            # Providers reject a message without content.
            return
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
            if call not in self._repaired:
                self.gaps.append(call)
            self._answer_for(call)

    def _answer_for(self, call: str) -> None:
        del self.open[call]
        text = self._repaired.get(call) or missing_result(call, self._begun)
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
    """A conversation as the fold of its records."""

    def __init__(self) -> None:
        self.head = ""
        self.entries: dict[str, MessageAppended | HistoryCompacted] = {}
        self.queued: dict[str, str] = {}  # steering that is not a message yet, by id, in order
        self.begun: set[str] = set()  # ids of calls that may have had effects
        self.calls: set[str] = set()  # ids of all calls, on any branch
        self.repaired: dict[str, str] = {}
        self.input = self.cached = self.output = 0  # tokens of all answers
        self.cost_usd: float | None = None
        self.skipped = 0  # records that could not be decoded or applied
        # Tokens of the path at the last answer, as billed: more exact than our estimate.
        self.measured: int | None = None
        self.chars_since = 0
        self._parents: dict[str, str] = {}
        self._line: PromptHistory | None = None
        self._answer = ""  # id of the last answer without a usage record

    @property
    def line(self) -> PromptHistory:
        """The messages up to the head, as a model receives them."""
        if self._line is None:
            self._line = self._drawn()
        return self._line

    @property
    def estimate(self) -> int:
        """Estimate the tokens of `line`, without system prompt and tools."""
        if self.measured is None:
            return _tokens(self.line.chars)
        return self.measured + _tokens(self.chars_since)

    def way(self) -> Iterator[MessageAppended | HistoryCompacted]:
        """Yield the entries from the head to the root, including those hidden by summaries."""
        at = self.head
        while at:
            entry = self.entries[at]
            yield entry
            at = self._parents[at]

    def result(self, call: str) -> str | None:
        """Return the full result of a call, on any branch."""
        for entry in reversed(self.entries.values()):
            message = entry.message if isinstance(entry, MessageAppended) else None
            if isinstance(message, ToolMessage) and message.call == call:
                return message.text
        return None

    def read(self, memo: msgspec.Raw | bytes) -> None:
        """Apply an encoded record; count it if it cannot be decoded."""
        try:
            taken = _decode(memo)
        except (msgspec.DecodeError, RecursionError):
            self.skipped += 1
        else:
            self.take(taken)

    def take(self, memo: AnyConversationRecord) -> None:
        """Apply a record; count it if it does not make sense."""
        if isinstance(
            memo,
            MessageAppended,
            # First, because it is the most frequent: long conversations have thousands.
        ):
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
                self.repaired[call] = text
                if self._line is not None:
                    self._line.repair(call)
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
        # The usage record directly follows its answer, so the head tells which path was billed.
        if tokens.input and self._answer == self.head:
            self.measured, self.chars_since = tokens.input + tokens.output, 0
            self._answer = ""

    def _drawn(self) -> PromptHistory:
        """Build the path to the head, with the newest summary in place of what it covers."""
        line = PromptHistory(self.begun, self.repaired)
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
        # The entry that the summary keeps was lost, so what it covers is unknown: ignore the
        # summary.
        return chain, None


def _tokens(chars: int) -> int:
    return chars // 4


# Repair of tool calls without a result.

ABORTED: Final = "[Aborted by user]"
_BEGUN: Final = " It had begun; it may or may not have completed."


def repairs(tree: ConversationTree, *, is_aborted: bool = False) -> tuple[ToolCallRepaired, ...]:
    """Return a repair for every call on the path without a result.

    The caller must own the conversation: a call that is still running looks the same. `is_aborted`:
    the person has just stopped the open calls.
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


def repair_notice(count: int) -> str:
    """Return the notice for the person about repairs."""
    calls = "1 tool call" if count == 1 else f"{count} tool calls"
    return f"{calls} had no result; the model receives the reason instead."
