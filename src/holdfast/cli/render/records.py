"""Decide what a program reads of a turn: a record for each event, and one for the result.

Every record has `schema`, which changes when a reader would have to, and `type`.
"""

from __future__ import annotations

from holdfast.cli.model import Json

SCHEMA = 1

Record = dict[str, object]


def thread_record(thread: str) -> Record:
    """The first record, as soon as it is known in which thread the turn runs."""
    return {"schema": SCHEMA, "type": "thread", "thread": thread}


def event_record(method: str, params: Json) -> Record:
    """An event, as it is on Codex's wire."""
    return {"schema": SCHEMA, "type": "event", "method": method, "params": params}


def approval_record(approval: Record, *, decision: str, why: str) -> Record:
    """What Codex asked and how it was answered: as the person said, or why they did not."""
    kind = {"schema": SCHEMA, "type": "approval"}
    return {**kind, "approval": approval, "decision": decision, "why": why}


def result_record(result: Result, *, error: object) -> Record:
    """The last record, however the turn ended."""
    return {
        "schema": SCHEMA,
        "type": "result",
        "status": result.status,
        "text": result.text,
        "thread": result.thread,
        "usage": result.usage,
        "error": error,
    }


class Result:
    """What is known of a turn so far; as long as it has not ended, it counts as failed."""

    def __init__(self) -> None:
        self.status = "failed"
        self.thread: str | None = None
        self.usage: Json = None
        self._item: Json = None
        self._said: list[str] = []

    @property
    def text(self) -> str:
        """The last message, as far as it came."""
        return "".join(self._said)

    def take(self, method: str, params: Json) -> None:
        """Learn from one event."""
        match method, params:
            case "item/agentMessage/delta", {"itemId": item, "delta": str(text)}:
                if item != self._item:
                    self._item, self._said = item, []
                self._said.append(text)
            case "item/completed", {"item": {"type": "agentMessage", "text": str(text)}}:
                self._item, self._said = None, [text]
            case "thread/tokenUsage/updated", {"tokenUsage": usage}:
                self.usage = usage
            case "turn/completed", {"turn": {"status": str(status)}}:
                self.status = status
            case _:
                pass
