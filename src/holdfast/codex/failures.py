"""What can go wrong between us and a Codex app-server."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class CodexNotFound(
    Failure,
    code="CODEX_NOT_FOUND",
    kind=Kind.MISSING,
    title="Codex is not installed",
    user_message="{path} could not be started: {reason}. Install Codex (npm install -g "
    "@openai/codex) or say where it is.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_RUNNER),
):
    """The Codex program does not exist or may not be run."""

    path: str
    reason: str


class CodexStartupFailed(
    Failure,
    code="CODEX_STARTUP_FAILED",
    kind=Kind.UNAVAILABLE,
    title="Codex did not start",
    user_message="Codex ended before it was ready ({reason}). Its own words are in the details.",
    recovery=Recovery.ESCALATE,
    actions=(Action.OPEN_SETTINGS, Action.RETRY, Action.SWITCH_RUNNER),
):
    """The app-server ended before the handshake."""

    reason: str
    status: int | None = None
    stderr: str = ""


class CodexInitTimeout(
    Failure,
    code="CODEX_INIT_TIMEOUT",
    kind=Kind.LATE,
    title="Codex did not get ready",
    user_message="Codex was not ready within {limit:g} seconds and was stopped.",
    recovery=Recovery.ESCALATE,
    actions=(Action.RETRY, Action.SWITCH_RUNNER),
):
    """The app-server did not answer the handshake in time, and was killed."""

    limit: float
    stderr: str = ""


class CodexInitRejected(
    Failure,
    code="CODEX_INIT_REJECTED",
    kind=Kind.BROKEN,
    title="Codex refused the handshake",
    user_message="Codex refused to talk to this version: {reason}",
    actions=(Action.SWITCH_RUNNER,),
):
    """The app-server refused the handshake, and was killed."""

    reason: str


class ApprovalHookCancelled(
    Failure,
    code="CODEX_HOOK_CANCELLED",
    kind=Kind.CANCELLED,
    title="The approval hook was cancelled",
    user_message="The approval hook was cancelled before it decided; the request was declined.",
):
    """An approval hook was cancelled by its own program; the request is declined."""


class TurnInProgress(
    Failure,
    code="CODEX_TURN_IN_PROGRESS",
    kind=Kind.CONFLICT,
    title="A turn is already running",
    user_message="This thread is still busy with another turn; wait for it or interrupt it.",
    recovery=Recovery.WAIT,
    actions=(Action.WAIT, Action.CANCEL),
):
    """A second turn was started on a thread while one runs.

    The server itself would not refuse: it would mix the second input into the running turn.
    """

    thread: str
    turn: str


class ThreadClosed(
    Failure,
    code="CODEX_THREAD_CLOSED",
    kind=Kind.CONFLICT,
    title="The thread is closed",
    user_message="Codex sends no more news of this thread ({reason}). Resume it to go on.",
    actions=(Action.RESUME,),
):
    """A thread was closed, archived, deleted or unsubscribed from.

    A turn that ran at that time may go on in the server, where this connection cannot see it.
    """

    thread: str
    reason: str


class TurnMismatch(
    Failure,
    code="CODEX_TURN_MISMATCH",
    kind=Kind.UNCERTAIN,
    title="Codex ran another turn",
    user_message="Codex said that it starts turn {turn}, and ran turn {other} instead. Look at "
    "what happened before you ask again.",
    actions=(Action.RESUME,),
):
    """The server answered `turn/start` with an id, and its news was of another turn."""

    thread: str
    turn: str
    other: str


class OptionInvalid(
    Failure,
    code="CODEX_OPTION_INVALID",
    kind=Kind.INVALID,
    title="Codex does not have this option",
    user_message="{option} cannot be {value}. Choose one of: {known}.",
):
    """An option of a turn has a value that the protocol has no form for."""

    option: str
    value: str
    known: str


class CodexIncompatible(
    Failure,
    code="CODEX_INCOMPATIBLE",
    kind=Kind.BROKEN,
    title="Codex version not supported",
    user_message="Codex {version} sent {method} in a form that cannot be read: {reason}. Supported "
    "are Codex {oldest} and newer, tested up to {newest}. Install one of these versions "
    "(npm install -g @openai/codex@{newest}), or update Holdfast.",
    recovery=Recovery.ESCALATE,
    actions=(Action.SWITCH_RUNNER, Action.OPEN_SETTINGS),
):
    """A message of the app-server lacks what nothing can be done without."""

    method: str
    reason: str
    version: str
    oldest: str
    newest: str


class CodexOverloaded(
    Failure,
    code="CODEX_OVERLOADED",
    kind=Kind.BUSY,
    title="Codex is overloaded",
    user_message="Codex has more requests than it can hold; {method} was not carried out.",
    actions=(Action.RETRY, Action.WAIT),
):
    """The app-server turned a request away because too many wait; it did nothing."""

    method: str


class EventsLost(
    Failure,
    code="CODEX_EVENTS_LOST",
    kind=Kind.LOST,
    title="Too slow to follow",
    user_message="The turn produced more than could be held for this reader. It goes on; its "
    "items can be read from the thread's history.",
    recovery=Recovery.USE_ALTERNATIVE,
    retryable=False,
    actions=(Action.RESUME,),
):
    """A turn's events were not read, and no more of them could be kept."""

    thread: str


class TurnFailed(
    Failure,
    code="CODEX_TURN_FAILED",
    kind=Kind.BROKEN,
    title="The turn failed",
    user_message="Codex could not finish the turn: {reason}",
    recovery=Recovery.RETRY_BACKOFF,
    retryable=True,
    actions=(Action.RETRY, Action.SWITCH_MODEL, Action.CANCEL),
):
    """A turn ended with an error that has no name of its own."""

    reason: str
    http_status: int | None = None


class ModelRefused(
    Failure,
    code="CODEX_MODEL_REFUSED",
    kind=Kind.INVALID,
    title="The model refused the request",
    user_message="The model provider refused the request: {reason}",
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """The model provider says that the request itself is wrong."""

    reason: str
    http_status: int | None = None


class ModelMissing(
    Failure,
    code="CODEX_MODEL_MISSING",
    kind=Kind.MISSING,
    title="Unknown model",
    user_message="The model provider does not know this model: {reason}",
    actions=(Action.SWITCH_MODEL, Action.OPEN_SETTINGS),
):
    """The model provider does not know the model that was asked for."""

    reason: str
    http_status: int | None = None


class ModelAuth(
    Failure,
    code="CODEX_MODEL_AUTH",
    kind=Kind.CREDENTIALS,
    title="Codex is not signed in",
    user_message="The model provider refused Codex's credentials. Sign in again (codex login), "
    "or check the key of the provider.",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_RUNNER),
):
    """The model provider refused the credentials that Codex has."""

    reason: str
    http_status: int | None = None


class ModelLimited(
    Failure,
    code="CODEX_MODEL_LIMITED",
    kind=Kind.LIMITED,
    title="Too many requests to the model",
    user_message="The model provider limits how often it may be asked; wait and try again.",
    actions=(Action.WAIT, Action.RETRY, Action.SWITCH_MODEL),
):
    """The model provider was asked too often."""

    reason: str
    http_status: int | None = None


class ModelQuotaSpent(
    Failure,
    code="CODEX_MODEL_QUOTA_SPENT",
    kind=Kind.SPENT,
    title="The usage limit is reached",
    user_message="The account's usage limit is reached: {reason}",
    actions=(Action.SWITCH_MODEL, Action.SWITCH_RUNNER, Action.OPEN_SETTINGS),
):
    """The quota or the budget of the account is used up."""

    reason: str
    http_status: int | None = None


class ModelUnavailable(
    Failure,
    code="CODEX_MODEL_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="The model does not answer",
    user_message="The model provider cannot be reached or does not answer: {reason}",
    actions=(Action.RETRY, Action.SWITCH_MODEL, Action.CANCEL),
):
    """The model provider is down, overloaded or out of reach."""

    reason: str
    http_status: int | None = None


class CodexContextExhausted(
    Failure,
    code="CODEX_CONTEXT_EXHAUSTED",
    kind=Kind.INVALID,
    title="The conversation is too long",
    user_message="The conversation no longer fits the model. Start a new thread from a summary, "
    "or ask for a narrower change.",
    actions=(Action.REGENERATE, Action.SWITCH_MODEL, Action.CANCEL),
):
    """The conversation is longer than the model can take."""

    reason: str
    http_status: int | None = None


class PolicyRefused(
    Failure,
    code="CODEX_POLICY_REFUSED",
    kind=Kind.DENIED,
    title="Refused by policy",
    user_message="The provider's policy stopped the turn: {reason}",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.SWITCH_MODEL, Action.CANCEL),
):
    """A policy of the provider, or too many refused approvals, stopped the turn."""

    reason: str
    http_status: int | None = None


class CodexSandboxFailed(
    Failure,
    code="CODEX_SANDBOX_FAILED",
    kind=Kind.UNCONFINED,
    title="Codex has no sandbox",
    user_message="Codex could not set up its sandbox: {reason}",
    actions=(Action.OPEN_SETTINGS, Action.SWITCH_RUNNER),
):
    """Codex could not confine a command."""

    reason: str
    http_status: int | None = None
