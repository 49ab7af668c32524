"""What an editor is told of a session, in the words of the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

import acp
from acp import schema

from holdfast.host import Kept, Seen, Shown
from holdfast.host.model import Happened, Prompted
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Delta,
    FilesChanged,
    Noticed,
    Planned,
    Progress,
    Said,
    Sort,
    Thought,
    ToolEnded,
    ToolStarted,
    Used,
)

Update: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.UsageUpdate
)

_STATUSES: Final[dict[Progress, schema.PlanEntryStatus]] = {
    Progress.OPEN: "pending",
    Progress.BEGUN: "in_progress",
    Progress.DONE: "completed",
}
_KINDS: Final[dict[str, schema.ToolKind]] = {
    "read": "read",
    "edit": "edit",
    "write": "edit",
    "patch": "edit",
    "delete": "delete",
    "search": "search",
    "shell": "execute",
    "run": "execute",
    "command": "execute",
    "fetch": "fetch",
}


class Updates:
    """Turns what is seen of a session into updates; nothing is told twice."""

    def __init__(self, *, is_replayed: bool = False) -> None:
        self._is_replayed = is_replayed
        self._streamed: set[str] = set()  # items that were told piece by piece
        self._last: str | None = None  # the item that was told of last

    def of(self, seen: Seen) -> Iterator[Update]:
        """What an editor is told of it."""
        match seen:
            case Shown(deltas):
                for delta in deltas:
                    yield from self._grown(delta)
            case Kept(_, Happened(event=event)):
                yield from self._told(event)
            case Kept(_, Prompted(text=text)) if self._is_replayed:
                yield acp.update_user_message_text(text)
            case _:
                pass

    def _grown(self, delta: Delta) -> Iterator[Update]:
        if delta.sort is not Sort.OUTPUT:
            yield self._words(delta.item, delta.sort, delta.text)
            self._streamed.add(delta.item)

    def _words(self, item: str, sort: Sort, text: str) -> Update:
        """A piece of what is said; an editor joins pieces, so another item begins a paragraph."""
        if self._last is not None and self._last != item:
            text = f"\n\n{text}"
        self._last = item
        is_said = sort is Sort.TEXT
        say = acp.update_agent_message_text if is_said else acp.update_agent_thought_text
        return say(text)

    def _told(self, event: AnyEvent) -> Iterator[Update]:
        match event:
            case Said(item, text) | Thought(item, text):
                if item not in self._streamed:
                    sort = Sort.TEXT if isinstance(event, Said) else Sort.THOUGHT
                    yield self._words(item, sort, text)
            case _:
                yield from self._done(event)

    def _done(self, event: AnyEvent) -> Iterator[Update]:
        match event:
            case ToolStarted(item, tool, title, given):
                kind = _KINDS.get(tool, "other")
                yield acp.start_tool_call(
                    item, title, kind=kind, status="in_progress", raw_input=given or None
                )
            case ToolEnded(item, is_ok, output):
                content = [acp.tool_content(acp.text_block(output))] if output else None
                yield acp.update_tool_call(
                    item, status="completed" if is_ok else "failed", content=content
                )
            case FilesChanged(item, paths):
                places = [schema.ToolCallLocation(path=path) for path in paths]
                yield acp.update_tool_call(item, locations=places)
            case Planned(steps):
                yield acp.update_plan(
                    acp.plan_entry(step.text, status=_STATUSES[step.progress]) for step in steps
                )
            case Noticed(text):
                yield acp.update_agent_thought_text(text)
            case Used(context_tokens=used, window_tokens=int(size)):
                yield schema.UsageUpdate(used=used, size=size, session_update="usage_update")
            case _:
                pass


def options_of(asked: Asked) -> list[schema.PermissionOption]:
    """The answers to a question, as an editor offers them."""
    return [
        schema.PermissionOption(
            option_id=choice.word,
            name=choice.meaning or choice.word,
            kind="reject_once" if choice.is_refusal else "allow_once",
        )
        for choice in asked.choices
    ]
