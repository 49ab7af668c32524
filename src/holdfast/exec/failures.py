"""What can go wrong with processes that outlive their connection."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class ReplayGap(
    Failure,
    code="EXEC_REPLAY_GAP",
    kind=Kind.UNCERTAIN,
    title="Output is missing",
    user_message="Some output of {process} is no longer kept by the server, so it was stopped. "
    "Output from number {oldest} on is still there; {expected} was needed.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The server no longer retains output that we have not seen."""

    process: str
    expected: int
    oldest: int


class OutputFlood(
    Failure,
    code="EXEC_OUTPUT_FLOOD",
    kind=Kind.BROKEN,
    title="Output out of order",
    user_message="{process} sent {held} pieces of output before the one that was due.",
):
    """More output arrived ahead of its turn than we agreed to hold."""

    process: str
    held: int


class RecoveryTimedOut(
    Failure,
    code="EXEC_RECOVERY_TIMED_OUT",
    kind=Kind.UNAVAILABLE,
    title="The server did not come back",
    user_message="The exec-server could not be reached again within {window:g} seconds. "
    "Processes may still run there.",
    recovery=Recovery.ESCALATE,
    actions=(Action.RETRY, Action.RESTART_BACKEND),
):
    """No connection could be made again before the server forgets the session."""

    window: float
    attempts: int


class SessionExpired(
    Failure,
    code="EXEC_SESSION_EXPIRED",
    kind=Kind.MISSING,
    title="The session is gone",
    user_message="The exec-server no longer knows this session; its processes were ended.",
    actions=(Action.RETRY,),
):
    """The server has forgotten the session that we want back."""

    session: str


class SessionAttached(
    Failure,
    code="EXEC_SESSION_ATTACHED",
    kind=Kind.BUSY,
    title="The session is in use",
    user_message="Session {session} is attached to another connection.",
    actions=(Action.WAIT, Action.RETRY),
):
    """Another connection holds the session, and takeover is off."""

    session: str


class OutcomeUnknown(
    Failure,
    code="EXEC_OUTCOME_UNKNOWN",
    kind=Kind.UNCERTAIN,
    title="It may have happened",
    user_message="The connection broke while {method} was under way; it may or may not have "
    "happened. Look before you repeat it.",
    actions=(Action.RETRY, Action.CANCEL),
):
    """A request that changes something was in flight when the connection broke."""

    method: str


class StartFailed(
    Failure,
    code="EXEC_START_FAILED",
    kind=Kind.BROKEN,
    title="The command did not start",
    user_message="{command} could not be started: {reason}.",
    recovery=Recovery.FIX_INPUT,
):
    """A process could not be started."""

    command: str
    reason: str


class ProcessUnknown(
    Failure,
    code="EXEC_PROCESS_UNKNOWN",
    kind=Kind.MISSING,
    title="No such process",
    user_message="The exec-server knows no process {process} in this session.",
):
    """A request names a process that the session does not have."""

    process: str


class ProcessExists(
    Failure,
    code="EXEC_PROCESS_EXISTS",
    kind=Kind.CONFLICT,
    title="The name is taken",
    user_message="The session already has a process {process}; choose another id.",
):
    """A process was to be started under an id that is in use."""

    process: str


class StartCancelled(
    Failure,
    code="EXEC_START_CANCELLED",
    kind=Kind.CANCELLED,
    title="The start was cancelled",
    user_message="{process} was ended before it had started.",
):
    """A process was terminated while it was being started."""

    process: str


class KeeperLost(
    Failure,
    code="EXEC_KEEPER_LOST",
    kind=Kind.LOST,
    title="The processes have ended",
    user_message="The keeper of the processes is gone ({reason}), and they ended with it.",
    recovery=Recovery.ESCALATE,
    retryable=False,
    actions=(Action.RESTART_BACKEND, Action.VIEW_REPORT),
):
    """The parent of all processes is gone, and so are they."""

    reason: str


class SandboxUnavailable(
    Failure,
    code="SANDBOX_UNAVAILABLE",
    kind=Kind.UNCONFINED,
    title="No sandbox",
    user_message="The command was not run, because it asks for a sandbox and there is none "
    "here ({reason}).",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """A process must be confined, and cannot be."""

    reason: str


class TokenRefused(
    Failure,
    code="EXEC_TOKEN_REFUSED",
    kind=Kind.UNAUTHENTICATED,
    title="Not allowed in",
    user_message="The exec-server refused the token. Give the file that it was started with "
    "(--token-file).",
    actions=(Action.OPEN_SETTINGS,),
):
    """The server did not accept our token, or we had none."""

    address: str
