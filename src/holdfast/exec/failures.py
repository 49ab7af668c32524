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
    user_message="There is no process {process}, or it was forgotten. The command holdfast ps "
    "lists those that there are.",
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


class ProcessLost(
    Failure,
    code="EXEC_PROCESS_LOST",
    kind=Kind.LOST,
    title="The process was lost",
    user_message="{process} does not run any more, and how it ended is not known: the keeper that "
    "held it was killed. Its output up to then is kept. Look at what it has done before you run it "
    "again.",
    recovery=Recovery.ESCALATE,
    retryable=False,
    actions=(Action.VIEW_REPORT,),
):
    """A process ended with its keeper, so its exit status is not known."""

    process: str


class NotIntroduced(
    Failure,
    code="EXEC_NOT_INTRODUCED",
    kind=Kind.MALFORMED,
    title="Not introduced yet",
    user_message="{method} came before the client had said {step}.",
):
    """A request came before the client had introduced itself."""

    method: str
    step: str


class RequestInvalid(
    Failure,
    code="EXEC_REQUEST_INVALID",
    kind=Kind.INVALID,
    title="Wrong parameters",
    user_message="The exec-server was asked in a way that it does not understand: {reason}.",
):
    """A request has the right form, and says something that cannot be meant."""

    reason: str


class RequestUnfit(
    Failure,
    code="EXEC_REQUEST_UNFIT",
    kind=Kind.CONFLICT,
    title="Not possible now",
    user_message="The exec-server cannot do that as things are: {reason}.",
):
    """A request is well said, and does not fit what is there."""

    reason: str


class FileMissing(
    Failure,
    code="EXEC_FILE_MISSING",
    kind=Kind.MISSING,
    title="No such file",
    user_message="{path} is not there ({reason}).",
):
    """A file, a directory or an open handle that was named does not exist."""

    path: str
    reason: str


class FileFailed(
    Failure,
    code="EXEC_FILE_FAILED",
    kind=Kind.BROKEN,
    title="The file could not be used",
    user_message="{path} could not be used as asked: {reason}.",
    recovery=Recovery.FIX_INPUT,
):
    """The system refused what was to be done with a file."""

    path: str
    reason: str


class HttpFailed(
    Failure,
    code="EXEC_HTTP_FAILED",
    kind=Kind.UNAVAILABLE,
    title="The web request failed",
    user_message="{url} could not be asked: {reason}.",
    actions=(Action.RETRY,),
):
    """A web request made for a client had no whole answer."""

    url: str
    reason: str


class HttpOverrun(
    Failure,
    code="EXEC_HTTP_OVERRUN",
    kind=Kind.BUSY,
    title="The answer was read too slowly",
    user_message="{url} answers faster than it is read: more than {unread_bytes_max} bytes were "
    "unread, and this exec-server cannot be told to wait.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RETRY,),
):
    """A streamed body came faster than it was taken, from a server that does not wait for that."""

    url: str
    unread_bytes_max: int


class StateTaken(
    Failure,
    code="EXEC_STATE_TAKEN",
    kind=Kind.BUSY,
    title="Another server has this state",
    user_message="Another exec-server works with {state}. Use that one, stop it, or give another "
    "--state.",
    actions=(Action.WAIT, Action.OPEN_SETTINGS),
):
    """Two servers cannot work with one state directory."""

    state: str


class OrphansEnded(
    Failure,
    code="EXEC_ORPHANS_ENDED",
    kind=Kind.LOST,
    title="Processes without a keeper were ended",
    user_message="Processes that had outlived their keeper were ended: {commands}.",
    recovery=Recovery.ESCALATE,
    retryable=False,
    actions=(Action.VIEW_REPORT,),
):
    """A keeper was lost while no server was there, and what it held still ran."""

    commands: tuple[str, ...]


class KeeperUnavailable(
    Failure,
    code="EXEC_KEEPER_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="Processes cannot be kept",
    user_message="No process can be started, because there is no keeper for {state}: {reason}.",
    recovery=Recovery.ESCALATE,
    retryable=False,
    actions=(Action.VIEW_REPORT,),
):
    """The keeper of a state directory cannot be started, or does not answer."""

    state: str
    reason: str


class KeeperMismatched(
    Failure,
    code="EXEC_KEEPER_MISMATCHED",
    kind=Kind.CONFLICT,
    title="The keeper speaks another version",
    user_message="Processes of another version of this program still run in {state}. Let them end, "
    "or use that version to stop them.",
    actions=(Action.WAIT, Action.CANCEL),
):
    """The keeper holds processes, and shares no version of the protocol with us."""

    state: str
    ours: tuple[int, ...]
    theirs: tuple[int, ...]


class KeeperOutdated(
    Failure,
    code="EXEC_KEEPER_OUTDATED",
    kind=Kind.CONFLICT,
    title="The keeper is too old",
    user_message="{command} was not run: the keeper of this server was started by an older version "
    "of this program, and cannot shut processes in. Let the processes that it holds end, then "
    "restart the server.",
    actions=(Action.WAIT, Action.RESTART_BACKEND),
):
    """A process is to enter a place or a sandbox, and who would start it does not know how."""

    command: str


class PlaceExposed(
    Failure,
    code="EXEC_PLACE_EXPOSED",
    kind=Kind.MISCONFIGURED,
    title="The place is not closed",
    user_message="What runs in {directory} could reach the server's own files in {state}, and by "
    "them everything else. Make the place with that directory hidden.",
    actions=(Action.OPEN_SETTINGS,),
):
    """Who is bound to a place could leave it through what its server keeps."""

    directory: str
    state: str


class ProcessBroken(
    Failure,
    code="EXEC_PROCESS_BROKEN",
    kind=Kind.BROKEN,
    title="The server lost the process",
    user_message="The exec-server can no longer follow {process}: {reason}.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """The server says that something went wrong with a process that it runs."""

    process: str
    reason: str


class StdinClosed(
    Failure,
    code="EXEC_STDIN_CLOSED",
    kind=Kind.CONFLICT,
    title="No input is taken",
    user_message="{process} takes no input: it was started without, its input was closed, "
    "or it has ended.",
    recovery=Recovery.NONE,
):
    """A process has no input that could be written to."""

    process: str


class CapabilityMissing(
    Failure,
    code="EXEC_CAPABILITY_MISSING",
    kind=Kind.INVALID,
    title="The server cannot do that",
    user_message="This exec-server has no {capability}; use one of Holdfast for it.",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """The server did not say that it can do what is asked."""

    capability: str


class InputFull(
    Failure,
    code="EXEC_INPUT_FULL",
    kind=Kind.BUSY,
    title="The process does not read",
    user_message="{process} has not read the last {pending_bytes} bytes of its input; what came "
    "after them was not written.",
    actions=(Action.WAIT, Action.RETRY),
):
    """More input waits for a process than we agreed to hold."""

    process: str
    pending_bytes: int


class TokenUnsafe(
    Failure,
    code="EXEC_TOKEN_UNSAFE",
    kind=Kind.MISCONFIGURED,
    title="The token file cannot be used",
    user_message="{path} cannot be used as a token file: {reason}.",
    actions=(Action.OPEN_SETTINGS,),
):
    """The file of the token cannot be read or made, or is no secret."""

    path: str
    reason: str


class SdkMissing(
    Failure,
    code="EXEC_EXTRA_MISSING",
    kind=Kind.MISCONFIGURED,
    title="Not installed",
    user_message="This needs {service}, which is an optional part. Install holdfast[{extra}].",
    actions=(Action.OPEN_SETTINGS,),
):
    """A library that only some need is asked for, and is not installed."""

    service: str
    extra: str
