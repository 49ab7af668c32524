"""What can go wrong with a tool that a model uses."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


class ToolRefused(
    Failure,
    code="TOOL_REFUSED",
    kind=Kind.INVALID,
    title="The tool cannot do that",
    user_message="{reason}",
):
    """A tool was asked for what it does not do, or what does not fit what is there."""

    reason: str


class EditStale(
    Failure,
    code="TOOL_EDIT_STALE",
    kind=Kind.CONFLICT,
    title="The lines are other ones now",
    user_message="Nothing was changed in {path}: {reason}. These lines are there now:\n{now}",
):
    """An edit was made for lines that have changed since."""

    path: str
    reason: str
    now: str


class LeaveRefused(
    Failure,
    code="TOOL_LEAVE_REFUSED",
    kind=Kind.DENIED,
    title="It was not allowed",
    user_message="It was not allowed to {wish} ({reason}). Do without it, or say why it is needed.",
):
    """Something would leave the sandbox, and nobody let it."""

    wish: str
    reason: str


class McpUnavailable(
    Failure,
    code="MCP_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="An MCP server cannot be used",
    user_message="The MCP server {server} cannot be used now: {reason}.",
    actions=(Action.RETRY, Action.OPEN_SETTINGS),
):
    """An MCP server does not start, does not answer, or has ended too often."""

    server: str
    reason: str
