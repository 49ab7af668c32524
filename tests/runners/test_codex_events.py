"""What Codex says means the same in our words."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.codex import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    Event,
    EventsDropped,
    FileChangeApproval,
    InputApproval,
    InputReply,
    PermissionsApproval,
    ToolApproval,
    UnknownEvent,
)
from holdfast.codex.events import read_event
from holdfast.codex.wire.generated import (
    AddPatchChangeKind,
    FileUpdateChange,
    ToolRequestUserInputQuestion,
)
from holdfast.rpc.model import Notification
from holdfast.runners.codex_events import decision_of, question_of, reply_of, translated
from holdfast.runners.model import (
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnStarted,
    UsageUpdated,
)

OF = {"threadId": "t", "turnId": "u"}
TOKENS = {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 3, "totalTokens": 13}


def event(method: str, **params: object) -> Event:
    return read_event(Notification(method, msgspec.Raw(msgspec.json.encode({**OF, **params}))))


def item(method: str, sort: str, **more: object) -> Event:
    return event(f"item/{method}", item={"type": sort, "id": "i", **more}, startedAtMs=0)


COMMAND: dict[str, object] = {"command": "make", "commandActions": [], "cwd": "/p"}


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        (
            event("turn/started", turn={"id": "u", "items": [], "status": "inProgress"}),
            [TurnStarted()],
        ),
        (
            event("item/agentMessage/delta", itemId="i", delta="He"),
            [Delta("i", DeltaKind.TEXT, "He")],
        ),
        (
            event("item/reasoning/summaryTextDelta", itemId="i", delta="Hm", summaryIndex=0),
            [Delta("i", DeltaKind.THOUGHT, "Hm")],
        ),
        (
            event("item/commandExecution/outputDelta", itemId="i", delta="out"),
            [Delta("i", DeltaKind.OUTPUT, "out")],
        ),
        (item("completed", "agentMessage", text="Hello"), [TextCompleted("i", "Hello")]),
        (item("completed", "reasoning", summary=["a", "b"]), [ThinkingCompleted("i", "a\n\nb")]),
        (item("completed", "reasoning", summary=[]), []),
        (
            item("started", "commandExecution", status="inProgress", **COMMAND),
            [ToolStarted("i", "run", "make", {"command": "make", "cwd": "/p"})],
        ),
        (
            item(
                "completed",
                "commandExecution",
                status="failed",
                exitCode=2,
                aggregatedOutput="no",
                **COMMAND,
            ),
            [ToolEnded("i", False, "no", 0, 2)],
        ),
        (
            item(
                "started",
                "fileChange",
                changes=[{"path": "a", "kind": {"type": "add"}, "diff": "x"}],
                status="inProgress",
            ),
            [ToolStarted("i", "edit", "edit a", {"paths": ["a"]})],
        ),
        (
            item(
                "completed",
                "fileChange",
                changes=[{"path": "a", "kind": {"type": "add"}, "diff": "x"}],
                status="completed",
            ),
            [FilesChanged("i", ("a",)), ToolEnded("i", True)],
        ),
        (
            item("completed", "fileChange", changes=[], status="declined"),
            [ToolEnded("i", False, "declined")],
        ),
        (
            event(
                "turn/plan/updated",
                plan=[{"step": "a", "status": "completed"}, {"step": "b", "status": "pending"}],
            ),
            [PlanUpdated((PlanStep("a", PlanProgress.DONE), PlanStep("b", PlanProgress.OPEN)))],
        ),
        (
            event(
                "thread/tokenUsage/updated",
                tokenUsage={"total": TOKENS, "last": TOKENS, "modelContextWindow": 100},
            ),
            [UsageUpdated("", 10, 4, 3, 13, 100)],
        ),
        (
            EventsDropped(3),
            [NoticeIssued("3 pieces of what was being said were not shown in time.")],
        ),
        (UnknownEvent("something/new"), []),
    ],
)
def test_an_event_is_translated(told: Event, meant: list[AnyEvent]) -> None:
    assert list(translated(told)) == meant


def of(more: type[Approval], **facts: object) -> Approval:
    return more(thread="t", turn="u", item="i", **facts)  # type: ignore[call-arg,arg-type]  # by table


CHANGES = tuple(FileUpdateChange(AddPatchChangeKind(), "", path) for path in "ab")


@pytest.mark.parametrize(
    ("approval", "title", "detail"),
    [
        (of(CommandApproval, command="make", cwd="/p", reason="why"), "Run make?", "why"),
        (
            of(CommandApproval, command="curl", cwd="/p", reason="", host="example.org"),
            "Let it reach example.org?",
            "curl",
        ),
        (of(FileChangeApproval, reason="why", changes=CHANGES), "Change a, b?", "why"),
        (of(FileChangeApproval, reason="", changes=()), "Change files?", ""),
        (
            of(PermissionsApproval, reason="why", cwd="/p", permissions={}),
            "Give it more permissions?",
            "why",
        ),
        (
            of(ToolApproval, server="s", reason="Allow it?", arguments={"a": 1}),
            "Allow it?",
            '{"a":1}',
        ),
    ],
)
def test_an_approval_is_a_question(approval: Approval, title: str, detail: str) -> None:
    asked = question_of(approval)

    assert (asked.title, asked.detail, asked.item, asked.is_approval) == (title, detail, "i", True)
    assert (asked.refusal, [each.word for each in asked.choices]) == (
        "no",
        ["yes", "always", "no", "stop"],
    )


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ("yes", ApprovalDecision.ACCEPT),
        ("always", ApprovalDecision.ACCEPT_FOR_SESSION),
        ("no", ApprovalDecision.DECLINE),
        ("stop", ApprovalDecision.CANCEL),
        ("whatever", ApprovalDecision.DECLINE),
    ],
)
def test_a_word_decides(answer: str, decision: ApprovalDecision) -> None:
    assert decision_of(answer) is decision


def test_its_own_questions_are_asked_one_by_one() -> None:
    questions = (ToolRequestUserInputQuestion("a", "H", "A?"), ToolRequestUserInputQuestion("b"))
    approval = InputApproval(thread="t", turn="u", item="i", questions=questions)

    asked = question_of(approval, 0)

    assert (asked.title, asked.detail, asked.is_approval, asked.refusal) == ("A?", "H", False, "")
    assert reply_of(approval, ("yes", "")) == InputReply({"a": ("yes",)})
