"""Failures of the command line itself."""

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
    """The arguments do not form a valid command."""

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
    """A new session has no agent: none is named, configured or remembered."""

    commands: tuple[str, ...]
    reasons: tuple[str, ...]


class OutputLost(
    Failure,
    code="CLI_OUTPUT_LOST",
    kind=Kind.NOT_DURABLE,
    title="The output could not be written",
    user_message="Writing to standard output failed ({reason}); the output is not complete.",
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
    user_message="The turn was interrupted after {limit:g} seconds, as --timeout asked. Its "
    "changes so far are kept; continue the session, or allow more time.",
    phase="codex.turn",
    recovery=Recovery.FIX_INPUT,
    actions=(Action.RESUME,),
):
    """A turn exceeded `--timeout`."""

    limit: float


class ThreadRefused(
    Failure,
    code="CLI_THREAD_REFUSED",
    kind=Kind.MISSING,
    title="The thread cannot be resumed",
    user_message="Codex cannot resume {thread}: {reason}. The command holdfast codex threads "
    "lists the threads that it stores.",
    phase="codex.resume",
):
    """Codex refused to resume the thread that was named."""

    thread: str
    reason: str


class ProcessAttached(
    Failure,
    code="CLI_PROCESS_ATTACHED",
    kind=Kind.BUSY,
    title="Another client is attached",
    user_message="Another client is attached to {process}. Read its output with holdfast logs -f "
    "{process}; to attach, detach the other client first.",
    phase="exec.attach",
):
    """Another client is attached to the process."""

    process: str


class ProcessUndying(
    Failure,
    code="CLI_PROCESS_UNDYING",
    kind=Kind.LATE,
    title="The process has not ended",
    user_message="{processes} received SIGKILL and has not ended within {limit:g} seconds. The "
    "kernel keeps it; often it waits for a disk or a file server that does not answer.",
    phase="stop",
    actions=(Action.WAIT,),
):
    """A process survived SIGKILL for too long, usually in uninterruptible I/O."""

    processes: str
    limit: float


class StopUnconfirmed(
    Failure,
    code="CLI_STOP_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was ended",
    user_message="{count} processes of Holdfast are running, and ending them was not confirmed. "
    "Answer yes when asked, or add --yes.",
    phase="stop",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """`holdfast stop --all` or `--orphans` was not confirmed."""

    count: int


class PublishUnconfirmed(
    Failure,
    code="CLI_PUBLISH_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was published",
    user_message="{project} would change at {count} path(s), which was not confirmed. Answer yes "
    "when asked, or add --yes. The draft is kept.",
    phase="publish",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """`holdfast publish` was not confirmed."""

    count: int
    project: str


class BranchUnconfirmed(
    Failure,
    code="CLI_BRANCH_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="No branch was created",
    user_message="The branch {branch} would get {count} commit(s) of the draft, which was not "
    "confirmed. Answer yes when asked, or add --yes. The draft is kept.",
    phase="publish",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """`holdfast publish --branch` was not confirmed."""

    count: int
    branch: str


class RestoreUnconfirmed(
    Failure,
    code="CLI_RESTORE_UNCONFIRMED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nothing was restored",
    user_message="Restoring {checkpoint} would change {count} path(s) of the project, which was "
    "not confirmed. Answer yes when asked, or add --yes; --keep-new keeps newer files.",
    phase="restore",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """`holdfast restore` was not confirmed.

    `comes`, `changes` and `goes` list the first paths that would be added, changed and deleted.
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
    user_message="{draft} has changes at {count} path(s), and deleting them was not confirmed. "
    "Answer yes when asked, or add --yes.",
    phase="discard",
    actions=(Action.GIVE_CONSENT, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """`holdfast draft discard` was not confirmed."""

    count: int
    draft: str


class DemoFailed(
    Failure,
    code="CLI_DEMO_FAILED",
    kind=Kind.BROKEN,
    title="The demonstration failed",
    user_message="`{command}` ended with status {status} instead of {expected}. `holdfast doctor` "
    "shows what this machine lacks.",
):
    """A command of the demonstration had an unexpected exit status."""

    command: str
    status: int
    expected: int


class EditorSupportMissing(
    Failure,
    code="EDITOR_SUPPORT_MISSING",
    kind=Kind.UNAVAILABLE,
    title="Editor support is not installed",
    user_message="`holdfast acp` needs the package agent-client-protocol. Install holdfast[acp].",
    recovery=Recovery.FIX_INPUT,
):
    """The optional package agent-client-protocol is not installed."""
