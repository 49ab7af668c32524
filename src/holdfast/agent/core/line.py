"""The way to the head as a model is told it: valid by construction, whatever was kept of it.

Every call is followed by exactly one result before anything else is said. A result that nobody
asked for, or that was given before, is left out; a call without one is given a word in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from msgspec.structs import replace

from holdfast.agent.core.receipts import receipt
from holdfast.agent.model import AnyMessage, ModelMessage, Said, ToolMessage

INTERRUPTED: Final = (
    "Interrupted: the agent was stopped while this ran. It may or may not have completed; find "
    "out before you repeat it."
)
NOT_STARTED: Final = "Interrupted: the agent was stopped before this. It was not started."


def missing(call: str, begun: Set[str]) -> str:
    """What a model is told in place of a result, if nobody knows more of the call."""
    return INTERRUPTED if call in begun else NOT_STARTED


class Line:
    """What a model is told of a conversation, in order; it grows at its end."""

    def __init__(self, begun: Set[str], mended: Mapping[str, str]) -> None:
        self.said: list[Said] = []
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
        text = self._mended.get(call) or missing(call, self._begun)
        self._say(f"{call}:mended", ToolMessage(call, text, is_error=True), len(text))

    def _say(self, id: str, message: AnyMessage, chars: int) -> None:
        self.said.append(Said(id, message))
        self.chars += chars
