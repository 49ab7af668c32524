"""Records of a session as session updates of the Agent Client Protocol."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import acp
from acp import schema

from holdfast.acp.model import Opened
from holdfast.host import DeltasReceived, RecordReceived, SupervisionEvent
from holdfast.host.model import EventRecorded, PromptQueued, PublicationRecorded, TurnClosed
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    PlanProgress,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    UsageUpdated,
)
from holdfast.workbench.failures import ConsentRequired

_SIZES: Final = re.compile(r"@@ -[0-9]+(?:,([0-9]{1,9}))? \+[0-9]+(?:,([0-9]{1,9}))? @@")


class Hunk(NamedTuple):
    """Old and new text of a hunk; `before` is None for a new file."""

    path: str
    before: str | None
    after: str


@dataclass(slots=True)
class _Lines:
    """Parser state of one hunk: lines so far, and the counts still expected."""

    left: list[int]
    old: list[str] = field(default_factory=list[str])
    new: list[str] = field(default_factory=list[str])

    def take(self, line: str) -> bool:
        """Consume a line; return False if it cannot belong to this hunk."""
        sign = line[:1] or " "
        if sign not in " +-":
            return False
        if sign != "+":
            self.old.append(f"{line[1:]}\n")
            self.left[0] -= 1
        if sign != "-":
            self.new.append(f"{line[1:]}\n")
            self.left[1] -= 1
        return min(self.left) >= 0


def hunks_of(text: str) -> list[Hunk] | None:
    """All hunks of a diff; None if it is not a complete diff."""
    try:
        return list(_read(text.removesuffix("\n").split("\n") if text else ()))
    except _NoDiffError:
        return None


class _NoDiffError(Exception):
    """The text is not a valid diff."""


def _read(lines: Sequence[str]) -> Iterator[Hunk]:
    at, path, is_new = 0, "", False
    while at < len(lines):
        if lines[at].startswith("--- ") and lines[at + 1 : at + 2] != []:
            is_new, path = lines[at] == "--- /dev/null", _path(lines[at : at + 2])
            at += 2
            continue
        if lines[at].startswith("\\ "):  # git's mark for a missing newline at the end of a file
            at += 1
            continue
        sizes = _SIZES.match(lines[at])
        if sizes is None or not path:
            raise _NoDiffError
        hunk = _Lines([1 if size is None else int(size) for size in sizes.groups()])
        at += 1
        while any(hunk.left):
            if at == len(lines) or not hunk.take(lines[at]):
                raise _NoDiffError
            at += 1
        yield Hunk(path, None if is_new else "".join(hunk.old), "".join(hunk.new))


def _path(heads: Sequence[str]) -> str:
    """The new name of the file, or the old one if it was deleted."""
    for head, sign, side in ((heads[1], "+++ ", "b/"), (heads[0], "--- ", "a/")):
        if not head.startswith(sign):
            raise _NoDiffError
        name = head.removeprefix(sign)
        if name != "/dev/null":
            return name.removeprefix(side)
    raise _NoDiffError


Update: TypeAlias = (
    schema.UserMessageChunk
    | schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.AgentPlanUpdate
    | schema.UsageUpdate
)
Content: TypeAlias = (
    schema.ContentToolCallContent | schema.FileEditToolCallContent | schema.TerminalToolCallContent
)

_STATUSES: Final[dict[PlanProgress, schema.PlanEntryStatus]] = {
    PlanProgress.OPEN: "pending",
    PlanProgress.BEGUN: "in_progress",
    PlanProgress.DONE: "completed",
}
_LASTING: Final = ("session", "always", "project")  # answers that count for later calls, too
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
    """Converts records and streamed text to updates; never sends the same text twice."""

    def __init__(self, about: Opened, *, is_replayed: bool = False) -> None:
        self._about, self._is_replayed = about, is_replayed
        self._streamed: dict[str, str] = {}  # text already sent of unfinished items
        self._last: str | None = None  # the item of the last update

    def of(self, seen: SupervisionEvent) -> Iterator[Update]:
        """The updates for one record."""
        match seen:
            case DeltasReceived(deltas):
                for delta in deltas:
                    yield from self._grown(delta)
            case RecordReceived(_, EventRecorded(event=event)):
                yield from self._told(event)
            case RecordReceived(_, PromptQueued(text=text)):
                self._last = None
                if self._is_replayed:
                    yield acp.update_user_message_text(text)
            case RecordReceived(_, PublicationRecorded(paths=paths)) if paths:
                yield self._noticed(f"The project has it now: {paths} path(s).")
            case RecordReceived(_, TurnClosed()):
                self._streamed.clear()
            case _:
                pass

    def _grown(self, delta: Delta) -> Iterator[Update]:
        if delta.sort is not DeltaKind.OUTPUT:
            yield self._words(delta.item, delta.sort, delta.text)
            self._streamed[delta.item] = self._streamed.get(delta.item, "") + delta.text

    def _words(self, item: str, sort: DeltaKind, text: str) -> Update:
        """A chunk of a message; editors join chunks, so another item begins a paragraph."""
        if self._last is not None and self._last != item:
            text = f"\n\n{text}"
        self._last = item
        is_said = sort is DeltaKind.TEXT
        say = acp.update_agent_message_text if is_said else acp.update_agent_thought_text
        return say(text)

    def _noticed(self, text: str) -> Update:
        said = text if self._last is None else f"\n\n{text}"
        self._last = ""
        return acp.update_agent_thought_text(said)

    def _told(self, event: AnyEvent) -> Iterator[Update]:
        match event:
            case TextCompleted(item) | ThinkingCompleted(item):
                if rest := self._rest(event):
                    sort = DeltaKind.TEXT if isinstance(event, TextCompleted) else DeltaKind.THOUGHT
                    yield self._words(item, sort, rest)
            case _:
                yield from self._done(event)

    def _rest(self, event: TextCompleted | ThinkingCompleted) -> str:
        """The text that was not sent yet: all of it if streamed chunks were dropped."""
        begun = self._streamed.pop(event.item, "")
        if event.text.startswith(begun):
            return event.text.removeprefix(begun)
        return event.text if isinstance(event, TextCompleted) else ""

    def _done(self, event: AnyEvent) -> Iterator[Update]:
        match event:
            case ToolStarted(item, tool, title, given):
                kind = _KINDS.get(tool, "other")
                yield acp.start_tool_call(
                    item,
                    title,
                    kind=kind,
                    status="in_progress",
                    locations=self._places(_named(given)) or None,
                    raw_input=given or None,
                )
            case ToolEnded(item, is_ok, output):
                status: schema.ToolCallStatus = "completed" if is_ok else "failed"
                yield acp.update_tool_call(item, status=status, content=self._content(output))
            case FilesChanged(item, paths):
                yield acp.update_tool_call(item, locations=self._places(paths))
            case PlanUpdated(steps):
                yield acp.update_plan(
                    acp.plan_entry(step.text, status=_STATUSES[step.progress]) for step in steps
                )
            case NoticeIssued(text):
                yield self._noticed(text)
            case UsageUpdated(context_tokens=used, window_tokens=int(size)):
                yield schema.UsageUpdate(used=used, size=size, session_update="usage_update")
            case _:
                pass

    def _content(self, output: str) -> list[Content] | None:
        """The content of a finished tool call: diffs for file changes, otherwise text."""
        hunks = hunks_of(output) if output.startswith("--- ") else None
        if hunks:
            return [
                acp.tool_diff_content(located(hunk.path, self._about), hunk.after, hunk.before)
                for hunk in hunks
            ]
        return [acp.tool_content(acp.text_block(output))] if output else None

    def _places(self, paths: Sequence[str]) -> list[schema.ToolCallLocation]:
        return [schema.ToolCallLocation(path=located(path, self._about)) for path in paths]


def located(path: str, about: Opened) -> str:
    """The path of a file in the project, also if the agent works in a copy."""
    there = posixpath.normpath(posixpath.join(about.project, path))
    if about.root and (there == about.root or there.startswith(f"{about.root}/")):
        return about.project + there.removeprefix(about.root)
    return there


def _named(given: Mapping[str, object]) -> list[str]:
    """Files that a tool call names in its arguments."""
    found = given.get("paths", given.get("path"))
    named: list[object] = [*found] if isinstance(found, list | tuple) else [found]
    return [each for each in named if isinstance(each, str)]


def permission_call(
    asked: QuestionAsked, started: ToolStarted | None, about: Opened
) -> schema.ToolCallUpdate:
    """The tool call of a permission request: input, files and reason."""
    why = "\n".join(each for each in (asked.title, asked.detail) if each)
    given = dict(started.input) if started is not None else {}
    if asked.detail and not given:
        given = {"detail": asked.detail}
    places = [
        schema.ToolCallLocation(path=located(path, about))
        for path in (_named(started.input) if started is not None else ())
    ]
    return schema.ToolCallUpdate(
        tool_call_id=asked.item or asked.question,
        title=started.title if started is not None else asked.title,
        kind=_KINDS.get(started.tool, "other") if started is not None else None,
        status="pending",
        content=[acp.tool_content(acp.text_block(why))],
        raw_input=given or None,
        locations=places or None,
    )


def options_of(asked: QuestionAsked) -> list[schema.PermissionOption]:
    """The options of a permission request."""
    return [
        schema.PermissionOption(
            option_id=choice.word,
            name=choice.meaning or choice.word,
            kind=_option_kind(choice),
        )
        for choice in asked.choices
    ]


def _option_kind(choice: AnswerChoice) -> schema.PermissionOptionKind:
    if choice.is_refusal or choice.word == "stop":
        return "reject_once"
    return "allow_always" if choice.word in _LASTING else "allow_once"


AGREED: Final = "agree"
CONSENT_OPTIONS: Final = [
    schema.PermissionOption(
        option_id=AGREED, name="Agree, for this project and from now on", kind="allow_always"
    ),
    schema.PermissionOption(option_id="refuse", name="Send nothing", kind="reject_once"),
]


def consent_title(required: ConsentRequired) -> str:
    """The consent question before content is sent to a provider."""
    return f"Let {required.provider} and its models see {required.scope} of {required.project}?"
