"""Translate events and approvals of Codex to those of runners."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.codex import (
    AgentMessageDeltaNotification,
    AgentMessageThreadItem,
    Approval,
    ApprovalDecision,
    CommandApproval,
    CommandExecutionOutputDeltaNotification,
    CommandExecutionThreadItem,
    ErrorNotification,
    Event,
    EventsDropped,
    FileChangeApproval,
    FileChangeThreadItem,
    InputApproval,
    InputReply,
    ItemCompletedNotification,
    ItemStartedNotification,
    McpToolCallThreadItem,
    PermissionsApproval,
    ReasoningSummaryTextDeltaNotification,
    ReasoningThreadItem,
    ThreadItem,
    ThreadTokenUsageUpdatedNotification,
    ToolApproval,
    ToolRequestUserInputQuestion,
    TurnPlanUpdatedNotification,
    TurnStartedNotification,
    WebSearchThreadItem,
)
from holdfast.runners.bounded_text import BoundedText
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnStarted,
    UsageUpdated,
)

_PROGRESS: Final = {"inProgress": PlanProgress.BEGUN, "completed": PlanProgress.DONE}
_Deltas = (
    AgentMessageDeltaNotification
    | ReasoningSummaryTextDeltaNotification
    | CommandExecutionOutputDeltaNotification
)
_DELTAS: Final[dict[type[Event], DeltaKind]] = {
    AgentMessageDeltaNotification: DeltaKind.TEXT,
    ReasoningSummaryTextDeltaNotification: DeltaKind.THOUGHT,
    CommandExecutionOutputDeltaNotification: DeltaKind.OUTPUT,
}
_FINE: Final = {"completed", ""}
_CHOICES: Final = {
    ApprovalDecision.ACCEPT: AnswerChoice("yes", "do it"),
    ApprovalDecision.ACCEPT_FOR_SESSION: AnswerChoice(
        "always", "do it, and do not ask again for this"
    ),
    ApprovalDecision.DECLINE: AnswerChoice("no", "leave it, and go on", is_refusal=True),
    ApprovalDecision.CANCEL: AnswerChoice("stop", "leave it, and end the turn"),
}


def translated(event: Event) -> tuple[AnyEvent, ...]:
    """Translate an event of a turn, except its end; empty for events that are internal to Codex."""
    sort = _DELTAS.get(type(event))
    if sort is not None:
        assert isinstance(event, _Deltas)
        return (Delta(event.item_id, sort, event.delta),)
    match event:
        case TurnStartedNotification():
            return (TurnStarted(),)
        case ItemStartedNotification(item=begun):
            return _begun(begun)
        case ItemCompletedNotification(item=done):
            return _done(done)
        case _:
            return _told(event)


def question_of(approval: Approval, number: int = 0) -> QuestionAsked:
    """Return the question for an approval, without an id; `number` selects one of several."""
    if isinstance(approval, InputApproval):
        return _inquiry(approval, approval.questions[number])
    title, detail = _wish(approval)
    choices = tuple(_CHOICES.values())
    return QuestionAsked("", title, detail, choices, approval.item, is_approval=True)


def decision_of(answer: str) -> ApprovalDecision:
    """Return the decision for an answer; unknown answers are refusals."""
    return next(
        (each for each, choice in _CHOICES.items() if choice.word == answer),
        ApprovalDecision.DECLINE,
    )


def reply_of(approval: InputApproval, answers: tuple[str, ...]) -> InputReply:
    """Return the reply to an input request; empty answers are omitted."""
    said = zip(approval.questions, answers, strict=True)
    return InputReply({question.id: (words,) for question, words in said if words})


def _told(event: Event) -> tuple[AnyEvent, ...]:
    match event:
        case TurnPlanUpdatedNotification(plan=plan):
            steps = (
                PlanStep(each.step, _PROGRESS.get(each.status, PlanProgress.OPEN)) for each in plan
            )
            return (PlanUpdated(tuple(steps)),)
        case ThreadTokenUsageUpdatedNotification(token_usage=usage):
            total = usage.total
            used = UsageUpdated(
                input_tokens=total.input_tokens,
                cached_tokens=total.cached_input_tokens,
                output_tokens=total.output_tokens,
                context_tokens=usage.last.total_tokens,
                window_tokens=usage.model_context_window,
            )
            return (used,)
        case ErrorNotification(will_retry=True, error=error):
            return (NoticeIssued(error.message),)
        case EventsDropped(count=count):
            return (NoticeIssued(f"{count} pieces of what was being said were not shown in time."),)
        case _:
            return ()


def _begun(item: ThreadItem) -> tuple[AnyEvent, ...]:
    match item:
        case CommandExecutionThreadItem(id=id_, command=command, cwd=cwd):
            return (ToolStarted(id_, "run", command, {"command": command, "cwd": cwd}),)
        case FileChangeThreadItem(id=id_, changes=changes):
            paths = [change.path for change in changes]
            return (ToolStarted(id_, "edit", f"edit {', '.join(paths)}", {"paths": paths}),)
        case McpToolCallThreadItem(id=id_, server=server, tool=tool, arguments=arguments):
            given: dict[str, object] = {"server": server, "tool": tool, "arguments": arguments}
            return (ToolStarted(id_, "mcp", f"{server}: {tool}", given),)
        case WebSearchThreadItem(id=id_, query=query):
            return (ToolStarted(id_, "search", f"search the web: {query}", {"query": query}),)
        case _:
            return ()


def _done(item: ThreadItem) -> tuple[AnyEvent, ...]:
    match item:
        case AgentMessageThreadItem(id=id_, text=text):
            return (TextCompleted(id_, text),)
        case ReasoningThreadItem(id=id_, summary=summary):
            return (ThinkingCompleted(id_, "\n\n".join(summary)),) if summary else ()
        case _:
            return _tool_done(item)


def _tool_done(item: ThreadItem) -> tuple[AnyEvent, ...]:
    match item:
        case CommandExecutionThreadItem(id=id_, exit_code=status):
            return (_ended(id_, item.aggregated_output or "", status == 0, status),)
        case FileChangeThreadItem(id=id_, changes=changes, status=status):
            is_made = status in _FINE
            ended = ToolEnded(id_, is_made, "" if is_made else status)
            paths = tuple(change.path for change in changes)
            return (FilesChanged(id_, paths), ended) if is_made else (ended,)
        case McpToolCallThreadItem(id=id_, status=status, error=error):
            return (_ended(id_, error.message if error else "", status in _FINE),)
        case WebSearchThreadItem(id=id_):
            return (ToolEnded(id_, is_ok=True),)
        case _:
            return ()


def _ended(item: str, output: str, is_ok: bool, status: int | None = None) -> ToolEnded:
    printed = BoundedText()
    printed.feed(output)
    return ToolEnded(item, is_ok, printed.text, printed.left_out, status)


def _wish(
    approval: CommandApproval | FileChangeApproval | PermissionsApproval | ToolApproval,
) -> tuple[str, str]:
    match approval:
        case CommandApproval(host=host, command=command) if host:
            return f"Let it reach {host}?", command
        case CommandApproval(command=command, reason=reason):
            return f"Run {command}?", reason
        case FileChangeApproval(changes=changes, reason=reason):
            paths = ", ".join(change.path for change in changes)
            return f"Change {paths or 'files'}?", reason
        case PermissionsApproval(reason=reason):
            return "Give it more permissions?", reason
        case ToolApproval(reason=reason, arguments=arguments):
            return reason, msgspec.json.encode(arguments).decode()


def _inquiry(approval: InputApproval, question: ToolRequestUserInputQuestion) -> QuestionAsked:
    choices = tuple(AnswerChoice(each.label, each.description) for each in question.options or ())
    return QuestionAsked("", question.question, question.header, choices, approval.item)
