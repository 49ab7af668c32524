"""Put the server's questions to a person, and a person's answers into its words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import msgspec
from msgspec import Raw

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
from holdfast.codex.wire.generated import (
    CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse,
    FileChangeRequestApprovalParams,
    FileChangeRequestApprovalResponse,
    FileUpdateChange,
    McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse,
    PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse,
    ToolRequestUserInputAnswer,
    ToolRequestUserInputParams,
    ToolRequestUserInputResponse,
)
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import read_params

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
USER_INPUT = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"
ASKED = (COMMAND, FILE_CHANGE, PERMISSIONS, USER_INPUT, ELICITATION)

_TOOL_CALL = "mcp_tool_call"  # the kind of an elicitation that is Codex's own, not a server's

_ELICITED: Final = {
    ApprovalDecision.ACCEPT: McpServerElicitationRequestResponse("accept", content={}),
    ApprovalDecision.ACCEPT_FOR_SESSION: McpServerElicitationRequestResponse(
        "accept", meta={"persist": "session"}, content={}
    ),
    ApprovalDecision.DECLINE: McpServerElicitationRequestResponse("decline"),
    ApprovalDecision.CANCEL: McpServerElicitationRequestResponse("cancel"),
}


class _Meta(msgspec.Struct):
    """What Codex adds to an elicitation of its own."""

    codex_approval_kind: str = ""
    tool_params: object = None


class Waiting(Protocol):
    """The items of a thread that wait for an approval, as far as its news told them."""

    def changes_of(self, item: str) -> tuple[FileUpdateChange, ...]:
        """What a file change would do."""
        ...

    def tool_call_of(self, server: str, arguments: object) -> str:
        """The item that calls a tool of an MCP server with these arguments; empty if unknown."""
        ...


Waits = Callable[[str], Waiting]
"""What waits in the thread of an id."""


def read_approval(method: str, params: Raw, waits: Waits) -> Approval | None:
    """Read what the server asks; None if it asks for what no person is asked here."""
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
            changes=waits(change.thread_id).changes_of(change.item_id),
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
    if method == ELICITATION:
        return _tool_approval(read_params(method, McpServerElicitationRequestParams, params), waits)
    asked = read_params(method, ToolRequestUserInputParams, params)
    return InputApproval(
        thread=asked.thread_id, turn=asked.turn_id, item=asked.item_id, questions=asked.questions
    )


def _tool_approval(asked: McpServerElicitationRequestParams, waits: Waits) -> ToolApproval | None:
    """Codex's own question about a tool call; None for forms that MCP servers send."""
    try:
        meta = msgspec.convert(asked.meta, _Meta)
    except msgspec.ValidationError:
        return None
    if meta.codex_approval_kind != _TOOL_CALL:
        return None
    return ToolApproval(
        thread=asked.thread_id,
        turn=asked.turn_id or "",
        item=waits(asked.thread_id).tool_call_of(asked.server_name, meta.tool_params),
        server=asked.server_name,
        reason=asked.message or "",
        arguments=meta.tool_params,
    )


def write_decision(
    approval: Approval | None, decision: ApprovalDecision | InputReply
) -> WireMessage:
    """Say it in the server's words; what does not fit the question is a refusal."""
    word = decision if isinstance(decision, ApprovalDecision) else ApprovalDecision.DECLINE
    granted = word in {ApprovalDecision.ACCEPT, ApprovalDecision.ACCEPT_FOR_SESSION}
    match approval:
        case CommandApproval():
            return CommandExecutionRequestApprovalResponse(word.value)
        case FileChangeApproval():
            return FileChangeRequestApprovalResponse(word.value)
        case PermissionsApproval(permissions=permissions):
            scope = "session" if word is ApprovalDecision.ACCEPT_FOR_SESSION else "turn"
            return PermissionsRequestApprovalResponse(permissions if granted else {}, scope)
        case ToolApproval():
            return _ELICITED[word]
        case None:
            return _ELICITED[ApprovalDecision.DECLINE]
        case InputApproval():
            said = decision if isinstance(decision, InputReply) else InputReply({})
            return ToolRequestUserInputResponse(
                {id_: ToolRequestUserInputAnswer(words) for id_, words in said.answers.items()}
            )
