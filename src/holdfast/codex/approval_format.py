"""Put the server's questions to a person, and a person's answers into its words."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Raw

from holdfast.codex.model import (
    Approval,
    CommandApproval,
    Decision,
    FileChangeApproval,
    InputApproval,
    PermissionsApproval,
    Reply,
)
from holdfast.codex.wire.generated import (
    CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse,
    FileChangeRequestApprovalParams,
    FileChangeRequestApprovalResponse,
    FileUpdateChange,
    PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse,
    ToolRequestUserInputAnswer,
    ToolRequestUserInputParams,
    ToolRequestUserInputResponse,
)
from holdfast.codex.wire.message import Message
from holdfast.codex.wire.reading import read_params

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
USER_INPUT = "item/tool/requestUserInput"
ASKED = (COMMAND, FILE_CHANGE, PERMISSIONS, USER_INPUT)

Changes = Callable[[str, str], tuple[FileUpdateChange, ...]]


def read_approval(method: str, params: Raw, changes: Changes) -> Approval:
    """Read what the server asks; `changes` knows what a file change of a thread would do."""
    if method == COMMAND:
        command = read_params(method, CommandExecutionRequestApprovalParams, params)
        network = command.network_approval_context
        return CommandApproval(
            thread=command.thread_id,
            turn=command.turn_id,
            item=command.item_id,
            command=command.command or "",
            cwd=command.cwd or "",
            reason=command.reason or "",
            host=network.host if network else "",
        )
    if method == FILE_CHANGE:
        change = read_params(method, FileChangeRequestApprovalParams, params)
        return FileChangeApproval(
            thread=change.thread_id,
            turn=change.turn_id,
            item=change.item_id,
            reason=change.reason or "",
            changes=changes(change.thread_id, change.item_id),
        )
    if method == PERMISSIONS:
        more = read_params(method, PermissionsRequestApprovalParams, params)
        return PermissionsApproval(
            thread=more.thread_id,
            turn=more.turn_id,
            item=more.item_id,
            reason=more.reason or "",
            cwd=more.cwd,
            permissions=more.permissions,
        )
    asked = read_params(method, ToolRequestUserInputParams, params)
    return InputApproval(
        thread=asked.thread_id, turn=asked.turn_id, item=asked.item_id, questions=asked.questions
    )


def write_decision(approval: Approval, decision: Decision | Reply) -> Message:
    """Say it in the server's words; what does not fit the question is a refusal."""
    word = decision if isinstance(decision, Decision) else Decision.DECLINE
    granted = word in {Decision.ACCEPT, Decision.ACCEPT_FOR_SESSION}
    match approval:
        case CommandApproval():
            return CommandExecutionRequestApprovalResponse(word.value)
        case FileChangeApproval():
            return FileChangeRequestApprovalResponse(word.value)
        case PermissionsApproval(permissions=permissions):
            scope = "session" if word is Decision.ACCEPT_FOR_SESSION else "turn"
            return PermissionsRequestApprovalResponse(permissions if granted else {}, scope)
        case InputApproval():
            said = decision if isinstance(decision, Reply) else Reply({})
            return ToolRequestUserInputResponse(
                {id_: ToolRequestUserInputAnswer(words) for id_, words in said.answers.items()}
            )
