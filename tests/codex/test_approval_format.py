"""The server's questions become approvals, and decisions its own words."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from holdfast.codex.approval_format import (
    COMMAND,
    ELICITATION,
    FILE_CHANGE,
    PERMISSIONS,
    USER_INPUT,
    read_approval,
    write_decision,
)
from holdfast.codex.model import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    FileChangeApproval,
    InputApproval,
    InputReply,
    PermissionsApproval,
    ToolApproval,
)
from holdfast.codex.wire.generated import AddPatchChangeKind, FileUpdateChange
from holdfast.rpc.failures import ParamsInvalid

IDS = {"threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 1}
CHANGE = FileUpdateChange(AddPatchChangeKind(), "+x", "/p/x")
ASKED: list[tuple[str, dict[str, object], Approval | None]] = [
    (
        COMMAND,
        {"command": "ls", "cwd": "/p", "reason": "need", "kind": "command"},
        CommandApproval(thread="t", turn="u", item="i", command="ls", cwd="/p", reason="need"),
    ),
    (
        COMMAND,
        {"networkApprovalContext": {"host": "example.org", "protocol": "https"}},
        CommandApproval(
            thread="t", turn="u", item="i", command="", cwd="", reason="", host="example.org"
        ),
    ),
    (
        FILE_CHANGE,
        {"reason": None},
        FileChangeApproval(thread="t", turn="u", item="i", reason="", changes=(CHANGE,)),
    ),
    (
        PERMISSIONS,
        {"cwd": "/p", "permissions": {"network": True}},
        PermissionsApproval(
            thread="t", turn="u", item="i", reason="", cwd="/p", permissions={"network": True}
        ),
    ),
    (
        USER_INPUT,
        {"isBlocking": True, "questions": []},
        InputApproval(thread="t", turn="u", item="i", questions=()),
    ),
    (
        ELICITATION,
        {
            "serverName": "s",
            "mode": "form",
            "_meta": {"codex_approval_kind": "mcp_tool_call", "tool_params": {"a": 1}},
            "message": "Allow it?",
        },
        ToolApproval(
            thread="t", turn="u", item="s 1", server="s", reason="Allow it?", arguments={"a": 1}
        ),
    ),
    (ELICITATION, {"serverName": "s", "mode": "form", "message": "Your name?"}, None),
]


class Waiting:
    """What waits in a thread, as an approval names it."""

    def changes_of(self, item: str) -> tuple[FileUpdateChange, ...]:
        return (CHANGE,) if item == "i" else ()

    def tool_call_of(self, server: str, arguments: object) -> str:
        return f"{server} {len(str(arguments)) // 8}"


def waiting(_: str) -> Waiting:
    return Waiting()


@pytest.mark.parametrize(("method", "params", "approval"), ASKED)
def test_what_is_asked(method: str, params: dict[str, object], approval: Approval | None) -> None:
    raw = Raw(json.dumps({**IDS, **params}).encode())

    assert read_approval(method, raw, waiting) == approval


def test_a_question_that_lacks_its_subject_is_refused() -> None:
    with pytest.raises(ParamsInvalid):
        read_approval(COMMAND, Raw(b"{}"), waiting)


COMMANDS, _, FILES, PERMITS, INPUTS, CALLS, NONE = (each[2] for each in ASKED)


@pytest.mark.parametrize(
    ("approval", "decision", "words"),
    [
        (COMMANDS, ApprovalDecision.ACCEPT, {"decision": "accept"}),
        (COMMANDS, ApprovalDecision.ACCEPT_FOR_SESSION, {"decision": "acceptForSession"}),
        (COMMANDS, ApprovalDecision.CANCEL, {"decision": "cancel"}),
        (COMMANDS, InputReply({}), {"decision": "decline"}),
        (FILES, ApprovalDecision.DECLINE, {"decision": "decline"}),
        (PERMITS, ApprovalDecision.ACCEPT, {"permissions": {"network": True}}),
        (
            PERMITS,
            ApprovalDecision.ACCEPT_FOR_SESSION,
            {"permissions": {"network": True}, "scope": "session"},
        ),
        (PERMITS, ApprovalDecision.DECLINE, {"permissions": {}}),
        (INPUTS, InputReply({"q": ("yes",)}), {"answers": {"q": {"answers": ["yes"]}}}),
        (INPUTS, ApprovalDecision.DECLINE, {"answers": {}}),
        (CALLS, ApprovalDecision.ACCEPT, {"action": "accept", "content": {}}),
        (
            CALLS,
            ApprovalDecision.ACCEPT_FOR_SESSION,
            {"action": "accept", "content": {}, "_meta": {"persist": "session"}},
        ),
        (CALLS, ApprovalDecision.DECLINE, {"action": "decline"}),
        (CALLS, ApprovalDecision.CANCEL, {"action": "cancel"}),
        (CALLS, InputReply({}), {"action": "decline"}),
        (NONE, ApprovalDecision.ACCEPT, {"action": "decline"}),
    ],
)
def test_what_is_answered(
    approval: Approval | None, decision: ApprovalDecision | InputReply, words: object
) -> None:
    written = msgspec.json.encode(write_decision(approval, decision))

    assert json.loads(written) == words
