"""What can go wrong at the command line itself."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class UsageWrong(
    Failure,
    code="CLI_USAGE_WRONG",
    kind=Kind.INVALID,
    title="Wrong usage",
    user_message="{problem} (see: {read_on})",
    phase="arguments",
):
    """The arguments name nothing that we can do."""

    problem: str
    read_on: str


class AgentNotChosen(
    Failure,
    code="AGENT_NOT_CHOSEN",
    kind=Kind.CREDENTIALS,
    title="No agent is chosen yet",
    user_message="Nothing was sent. Choose an agent by one of these commands; the choice is "
    "remembered, except the demo: {commands}. To enter a key: holdfast login PROVIDER.",
    phase="begin",
    actions=(Action.SWITCH_RUNNER,),
):
    """A session was to begin, and nobody said with which agent."""

    commands: tuple[str, ...]
    reasons: tuple[str, ...]


class OutputLost(
    Failure,
    code="CLI_OUTPUT_LOST",
    kind=Kind.NOT_DURABLE,
    title="The answer could not be written",
    user_message="Standard output took no more ({reason}), so what you see is not all of it.",
    phase="output",
    actions=(Action.FREE_DISK_SPACE, Action.RETRY),
):
    """Standard output is closed or full."""

    reason: str


class TurnTooLong(
    Failure,
    code="CLI_TURN_TOO_LONG",
    kind=Kind.LATE,
    title="The turn took too long",
    user_message="The turn was interrupted after {limit:g} seconds, as asked. What it did until "
    "then is done; continue it, or allow it more time.",
    phase="codex.turn",
    recovery=Recovery.FIX_INPUT,
    actions=(Action.RESUME,),
):
    """A turn took longer than the person allowed."""

    limit: float


class ThreadRefused(
    Failure,
    code="CLI_THREAD_REFUSED",
    kind=Kind.MISSING,
    title="The thread cannot be resumed",
    user_message="Codex does not resume {thread}: {reason}. The command holdfast codex threads "
    "lists those that it keeps.",
    phase="codex.resume",
):
    """Codex refused to resume the thread that was named."""

    thread: str
    reason: str


class ProcessAttached(
    Failure,
    code="CLI_PROCESS_ATTACHED",
    kind=Kind.BUSY,
    title="Somebody is attached",
    user_message="{process} is attached elsewhere. The command holdfast logs -f {process} shows "
    "what it writes; to take it over, leave it there first.",
    phase="exec.attach",
):
    """A process was to be attached that another client has."""

    process: str


class ProcessUndying(
    Failure,
    code="CLI_PROCESS_UNDYING",
    kind=Kind.LATE,
    title="It has not ended",
    user_message="{processes} was killed and has not ended within {limit:g} seconds. The system "
    "holds it; often it waits for a disk or a file server that does not answer.",
    phase="stop",
    actions=(Action.WAIT,),
):
    """A process was killed, and is still there."""

    processes: str
    limit: float


class StopUnconfirmed(
    Failure,
    code="CLI_STOP_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was ended",
    user_message="{count} things run for Holdfast here, and nobody said that they may end. Say yes "
    "when asked, or add --yes.",
    phase="stop",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """All was to be ended, and no person agreed."""

    count: int


class PublishUnconfirmed(
    Failure,
    code="CLI_PUBLISH_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was published",
    user_message="{project} would change at {count} path(s), and nobody said that it may. Say yes "
    "when asked, or add --yes. The draft is kept.",
    phase="publish",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """A draft was to be published, and no person agreed."""

    count: int
    project: str


class BranchUnconfirmed(
    Failure,
    code="CLI_BRANCH_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="No branch was made",
    user_message="The branch {branch} would get {count} commit(s) of the draft, and nobody said "
    "that it may. Say yes when asked, or add --yes. The draft is kept.",
    phase="publish",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """Commits of a draft were to become a branch, and no person agreed."""

    count: int
    branch: str


class RestoreUnconfirmed(
    Failure,
    code="CLI_RESTORE_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was restored",
    user_message="Restoring {checkpoint} would change {count} path(s) of the project, and nobody "
    "said that it may. Say yes when asked, or add --yes; --keep-new keeps what was made since.",
    phase="restore",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """A checkpoint was to be restored, and no person agreed.

    The lists have the first paths of each kind.
    """

    checkpoint: str
    count: int
    comes: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    goes: tuple[str, ...] = ()


class DiscardUnconfirmed(
    Failure,
    code="CLI_DISCARD_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was discarded",
    user_message="{draft} has changes at {count} path(s), and nobody said that they may go. Say "
    "yes when asked, or add --yes.",
    phase="discard",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """A draft with changes was to be discarded, and no person agreed."""

    count: int
    draft: str


class DemoFailed(
    Failure,
    code="CLI_DEMO_FAILED",
    kind=Kind.BROKEN,
    title="The demonstration went wrong",
    user_message="`{command}` ended with {status} and not with {expected}. `holdfast doctor` says "
    "what this machine lacks.",
):
    """A command of the demonstration did not end as it always does."""

    command: str
    status: int
    expected: int


class EditorSupportMissing(
    Failure,
    code="EDITOR_SUPPORT_MISSING",
    kind=Kind.UNAVAILABLE,
    title="Editor support is not installed",
    user_message="Editors need the package agent-client-protocol. Install holdfast[acp].",
    recovery=Recovery.FIX_INPUT,
):
    """An editor is to be answered, and the package that speaks its protocol is missing."""
