"""What can go wrong with a conversation."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class HostCrashed(
    Failure,
    code="HOST_CRASHED",
    kind=Kind.LOST,
    title="The agent crashed",
    user_message="The agent crashed and lost its current turn. Your conversation history is saved. "
    "Press Enter to continue.",
    actions=(Action.RETRY, Action.REVIEW_DRAFT),
):
    """The host of a session died while a turn ran."""

    session: str
    turn: int
    reason: str


class HostStopped(
    Failure,
    code="HOST_STOPPED",
    kind=Kind.CANCELLED,
    title="The turn was stopped",
    user_message="The turn was stopped by {by} with `holdfast stop`. Your conversation history and "
    "the draft are saved. Ask again to continue.",
    actions=(Action.RETRY, Action.REVIEW_DRAFT),
):
    """The host of a session, or its agent, was ended on purpose while a turn ran."""

    session: str
    turn: int
    by: str


class JournalRepaired(
    Failure,
    code="HOST_JOURNAL_REPAIRED",
    kind=Kind.LOST,
    title="Part of the conversation was damaged",
    user_message="The journal of this session was damaged in {count} place(s): what stood there is "
    "lost from the conversation, all other records are kept. The original is in {set_aside}.",
    recovery=Recovery.NONE,
):
    """Records of a session were unreadable or missing when a host opened its journal."""

    count: int
    set_aside: str


class QuestionGone(
    Failure,
    code="HOST_QUESTION_GONE",
    kind=Kind.STALE,
    title="The question is no longer open",
    user_message="The question has been answered, or the turn that it was asked in is over.",
):
    """An answer comes to a question that is not open."""

    question: str


class ChoiceUnknown(
    Failure,
    code="HOST_CHOICE_UNKNOWN",
    kind=Kind.INVALID,
    title="No such answer",
    user_message="{answer} is none of the answers to this question: {choices}.",
):
    """An answer is none of those that can be given."""

    answer: str
    choices: str


class NothingRuns(
    Failure,
    code="HOST_NOTHING_RUNS",
    kind=Kind.CONFLICT,
    title="Nothing to end",
    user_message="No turn is running.",
    recovery=Recovery.NONE,
):
    """A turn is to be ended, and there is none."""

    session: str


class SessionClosed(
    Failure,
    code="HOST_SESSION_CLOSED",
    kind=Kind.CONFLICT,
    title="The session has been ended",
    user_message="{session} was ended. Take it up again to go on.",
    actions=(Action.RESUME, Action.CANCEL),
):
    """Something is asked of a session that was ended."""

    session: str


class TooManyPrompts(
    Failure,
    code="HOST_QUEUE_FULL",
    kind=Kind.BUSY,
    title="Too much is waiting already",
    user_message="{waiting} prompts wait for the running turn to end. Wait, or end it.",
    actions=(Action.WAIT, Action.CANCEL),
):
    """As many prompts wait as are held."""

    waiting: int


class CommandReused(
    Failure,
    code="HOST_COMMAND_REUSED",
    kind=Kind.CONFLICT,
    title="This id is taken",
    user_message="The command {command} was given before, and meant something else.",
    recovery=Recovery.FIX_INPUT,
):
    """Two different commands came under one id."""

    command: str


class LeaseOutdated(
    Failure,
    code="HOST_LEASE_OUTDATED",
    kind=Kind.STALE,
    title="Another client has taken over",
    user_message="Another client leads this session by a newer lease ({newest}; yours is {given}).",
):
    """A caller with an older lease wants to lead."""

    given: int
    newest: int


class NotLeading(
    Failure,
    code="HOST_NOT_LEADING",
    kind=Kind.DENIED,
    title="Only watching",
    user_message="This client only watches the session. Attach as its leader first.",
):
    """A caller that has not attached as leader wants something done."""


class HostGone(
    Failure,
    code="HOST_GONE",
    kind=Kind.UNAVAILABLE,
    title="The backend keeps dying",
    user_message="The process behind this session died {starts} times within a minute, and is not "
    "started again by itself. Your conversation history is saved.",
    recovery=Recovery.ESCALATE,
    actions=(Action.RESTART_BACKEND, Action.VIEW_REPORT),
):
    """The host of a session does not stay alive, or does not come up."""

    starts: int
