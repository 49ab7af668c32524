"""Failures of the workbench."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class WorkbenchHeld(
    Failure,
    code="WORKBENCH_HELD",
    kind=Kind.BUSY,
    title="In use elsewhere",
    user_message="Another process is at work on {path}. Wait until it has ended, or stop it.",
    actions=(Action.WAIT, Action.RETRY, Action.CANCEL),
):
    """Another process holds the lock of this project's store."""

    path: str


class ObjectDamaged(
    Failure,
    code="WORKBENCH_OBJECT_DAMAGED",
    kind=Kind.BROKEN,
    title="Something kept is damaged",
    user_message="What {path} holds at {offset} is not what was written there ({reason}). Only "
    "checkpoints that contain it are damaged; choose another one.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """The stored bytes of an object do not match its checksum or hash."""

    object: str
    path: str
    offset: int
    reason: str


class ObjectMissing(
    Failure,
    code="WORKBENCH_OBJECT_MISSING",
    kind=Kind.BROKEN,
    title="Something kept is gone",
    user_message="{object} is no longer in the store. Only checkpoints that contain it are "
    "damaged; choose another one.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """No segment holds an object that a checkpoint or draft refers to."""

    object: str


class CheckpointCreateFailed(
    Failure,
    code="CHECKPOINT_CREATE_FAILED",
    kind=Kind.NOT_DURABLE,
    title="No checkpoint could be made",
    user_message="Nothing was changed, because {path} could not be kept as it is first: {reason}",
    retryable=True,
    actions=(Action.FREE_DISK_SPACE, Action.RETRY, Action.CANCEL),
):
    """The checkpoint before a publish or restore failed."""

    path: str
    reason: str


class CheckpointMissing(
    Failure,
    code="NOT_FOUND_CHECKPOINT",
    formerly="CHECKPOINT_MISSING",
    kind=Kind.MISSING,
    title="No such checkpoint",
    user_message="There is no checkpoint {checkpoint}; `holdfast checkpoint list` shows all.",
):
    """No checkpoint has this id."""

    checkpoint: str


class PublishedChanged(
    Failure,
    code="CONFLICT_PUBLISHED_CHANGED",
    kind=Kind.CONFLICT,
    title="The project changed meanwhile",
    user_message="Nothing was published: {paths} changed in the project since the draft began. "
    "The draft is kept; merge the changes into it (holdfast draft merge), or say file by file "
    "which to overwrite.",
    actions=(
        Action.MERGE_INTO_DRAFT,
        Action.FORCE,
        Action.PUBLISH_PARTIAL,
        Action.SEND_TO_AGENT,
    ),
):
    """The project changed at a path that a publish would replace."""

    paths: tuple[str, ...]


class BatchRefused(
    Failure,
    code="BATCH_REFUSED",
    kind=Kind.INVALID,
    title="The changes do not fit",
    user_message="None of the changes was made, because not all of them can be: {reasons}.",
    actions=(Action.REGENERATE, Action.CANCEL),
):
    """A change of a batch does not fit the draft or another change of the batch."""

    reasons: tuple[str, ...]


class BatchStale(
    Failure,
    code="BATCH_STALE",
    kind=Kind.STALE,
    title="The draft has moved on",
    user_message="None of the changes was made: {paths} changed in the draft meanwhile. "
    "Generate the changes again from the current draft.",
    actions=(Action.REGENERATE, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """A repeated batch finds a draft that has changed."""

    paths: tuple[str, ...]


class ConsentRequired(
    Failure,
    code="EGRESS_CONSENT_REQUIRED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nobody agreed to send this",
    user_message="Nothing was sent to {provider}, because there is no consent that it may see "
    "{scope} of {project}. Agree to it first.",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """Data of a project would be sent to a provider without the user's consent."""

    project: str
    provider: str
    scope: str


class MarkerDamaged(
    Failure,
    code="WORKBENCH_MARKER_DAMAGED",
    kind=Kind.BROKEN,
    title="An unfinished publication cannot be read",
    user_message="What was written down about an unfinished publication is damaged ({reason}), "
    "so it is neither finished nor undone; it is set aside now. Restore the checkpoint that was "
    "made before it.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """The checksum of a transaction marker does not match."""

    reason: str


class MarkerForeign(
    Failure,
    code="WORKBENCH_MARKER_FOREIGN",
    kind=Kind.MISCONFIGURED,
    title="Another version began a publication",
    user_message="Another version of this program began a publication and did not end it, and "
    "what it wrote down is not understood here: {reason}. Nothing was changed; use that version.",
    actions=(Action.CANCEL,),
):
    """A transaction marker was written by another version."""

    reason: str


class TransactionUnsettled(
    Failure,
    code="WORKBENCH_UNSETTLED",
    kind=Kind.UNCERTAIN,
    title="Not finished, and not undone yet",
    user_message="What was begun in {path} could be neither finished nor undone now ({reason}). "
    "The next command here tries again before anything else; `holdfast recover` does only that.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """A transaction failed and could not be undone; its marker is still there."""

    path: str
    reason: str


class ProjectRefused(
    Failure,
    code="PROJECT_REFUSED",
    kind=Kind.INVALID,
    title="No project",
    user_message="{path} cannot be worked on: {reason}.",
):
    """The directory cannot be used as a project."""

    path: str
    reason: str


class DraftMovedOn(
    Failure,
    code="APPROVAL_STALE_DIFF",
    formerly="DRAFT_MOVED_ON",
    kind=Kind.STALE,
    title="Not what was reviewed",
    user_message="Nothing was published: draft {draft} changed since it was reviewed. "
    "Review it again, then publish.",
    actions=(Action.REVIEW_DRAFT, Action.CANCEL),
):
    """A draft was written to after its review."""

    draft: str
    sealed: str
    seal: str


class DraftMerged(
    Failure,
    code="DRAFT_MERGED",
    kind=Kind.STALE,
    title="Their changes are merged in",
    user_message="Nothing was published yet: what changed in the project meanwhile was merged into "
    "draft {draft} ({paths}). Review it again, then publish.",
    actions=(Action.REVIEW_DRAFT, Action.CANCEL),
):
    """Project changes were merged into the draft, and the result is not reviewed yet."""

    draft: str
    paths: tuple[str, ...]


class MergeNothing(
    Failure,
    code="MERGE_NOTHING",
    kind=Kind.MISSING,
    title="Nothing to merge",
    user_message="Nothing was changed: draft {draft} has no conflict with the project at {path}; "
    "`holdfast draft diff` lists them.",
):
    """A path has no conflict between draft and project."""

    draft: str
    path: str


class PathMissing(
    Failure,
    code="NOT_FOUND_PATH",
    kind=Kind.MISSING,
    title="No such file",
    user_message="There is no file {path} in that version ({version}).",
):
    """A version of a file does not exist."""

    path: str
    version: str


class FileReadFailed(
    Failure,
    code="FILE_READ_FAILED",
    kind=Kind.CONFLICT,
    title="Something cannot be kept",
    user_message="Nothing was changed: {paths} cannot be read or kept, so a change of it could not "
    "be undone. Make it readable or move it away, or leave it out.",
    actions=(Action.PUBLISH_PARTIAL, Action.RETRY, Action.CANCEL),
):
    """A publish or restore would change a path that no checkpoint covers."""

    paths: tuple[str, ...]


class RestoreConflict(
    Failure,
    code="CHECKPOINT_RESTORE_FAILED",
    kind=Kind.CONFLICT,
    title="The project changed meanwhile",
    user_message="Nothing was restored: {paths} changed in the project at the same moment. Save "
    "what is open in other programs, and restore again.",
    actions=(Action.RETRY, Action.CANCEL),
):
    """The project changed during a restore."""

    paths: tuple[str, ...]


class RestoreStale(
    Failure,
    code="RESTORE_STALE",
    kind=Kind.STALE,
    title="Not what was shown",
    user_message="Nothing was restored: the project changed since you were shown what restoring "
    "{checkpoint} would do. Look at it again.",
    actions=(Action.RETRY, Action.CANCEL),
):
    """The project changed between the preview of a restore and the restore."""

    checkpoint: str


class RevisionMissing(
    Failure,
    code="REVISION_MISSING",
    kind=Kind.MISSING,
    title="No such revision",
    user_message="Draft {draft} has no revision {number} to go back to; "
    "`holdfast draft list` shows all.",
):
    """A draft has no revision with this number."""

    draft: str
    number: int


class HunkMissing(
    Failure,
    code="HUNK_MISSING",
    kind=Kind.INVALID,
    title="No such change in the file",
    user_message="{path} has no change {number}: it has {count} that can be chosen from; "
    "`holdfast draft diff` shows them.",
):
    """A file has no hunk with this number."""

    path: str
    number: int
    count: int


class DraftMissing(
    Failure,
    code="NOT_FOUND_DRAFT",
    formerly="DRAFT_MISSING",
    kind=Kind.MISSING,
    title="No such draft",
    user_message="There is no draft {draft} of {project}, or more than one whose name begins like "
    "that; `holdfast draft list` shows all, `holdfast draft open` makes one.",
):
    """No draft, or more than one, matches."""

    draft: str
    project: str


class DraftAmbiguous(
    Failure,
    code="DRAFT_AMBIGUOUS",
    kind=Kind.INVALID,
    title="Several drafts have changes",
    user_message="{project} has several drafts with changes: {drafts}. Say which one with "
    "`--draft ID`; `holdfast draft list` shows them.",
):
    """No draft was named, and several have changes."""

    drafts: tuple[str, ...]
    project: str


class DraftDamaged(
    Failure,
    code="DRAFT_DAMAGED",
    kind=Kind.BROKEN,
    title="A draft cannot be read",
    user_message="What is known about draft {draft} cannot be read ({reason}). Its files are kept "
    "in {path}: take from there what you need, then discard it.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.DISCARD_DRAFT, Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """The record of a draft is unreadable."""

    draft: str
    path: str
    reason: str


class WorktreeUncovered(
    Failure,
    code="WORKTREE_UNCOVERED",
    kind=Kind.CONFLICT,
    title="Some git data lies elsewhere",
    user_message="No draft of {project} was made: its git data at {outside} cannot be kept apart "
    "as well ({reason}), so that a commit in the draft would be one in the project. Open a draft "
    "of the repository that this belongs to.",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """A draft would share git data with its project."""

    project: str
    outside: str
    reason: str


class ReflinkUnavailable(
    Failure,
    code="REFLINK_UNAVAILABLE",
    kind=Kind.INVALID,
    title="No copy that shares its data",
    user_message="{project} cannot be copied without taking space for all of it ({reason}). "
    "Choose another mode.",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """The file system cannot share extents between project and draft."""

    project: str
    reason: str


class RevisionUnwritten(
    Failure,
    code="REVISION_UNWRITTEN",
    kind=Kind.NOT_DURABLE,
    title="Done, but not written down",
    user_message="The draft {draft} was changed as asked, all of it, but no revision of it could "
    "be written down ({reason}). The next command on it does that; repeat nothing.",
    actions=(Action.FREE_DISK_SPACE, Action.REVIEW_DRAFT),
):
    """A draft was changed, but its revision could not be written."""

    draft: str
    reason: str


class GitUnavailable(
    Failure,
    code="GIT_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="Git is not there",
    user_message="Nothing was changed, because git cannot be run: {reason}. Install git, or "
    "publish without --commit and --branch.",
    recovery=Recovery.FIX_INPUT,
):
    """The git program is missing."""

    reason: str


class GitFailed(
    Failure,
    code="GIT_FAILED",
    kind=Kind.BROKEN,
    title="Git could not do it",
    user_message="`git {command}` failed: {reason}. No branch was changed.",
):
    """A git command failed for a reason without a failure of its own."""

    command: str
    reason: str


class GitRepositoryMissing(
    Failure,
    code="GIT_REPOSITORY_MISSING",
    kind=Kind.MISSING,
    title="Not a git repository",
    user_message="Nothing was changed: {project} is not in a git repository. Run `git init` first, "
    "or publish without --commit and --branch.",
):
    """A commit was requested outside of a repository."""

    project: str


class GitRepositoryRefused(
    Failure,
    code="GIT_REPOSITORY_REFUSED",
    kind=Kind.CONFLICT,
    title="The repository cannot take a commit",
    user_message="Nothing was changed: nothing can be committed in the repository of {project} now "
    "({reason}). Publish without --commit, and commit with git.",
):
    """The state or the format of a repository does not permit a commit."""

    project: str
    reason: str


class GitIdentityMissing(
    Failure,
    code="GIT_IDENTITY_MISSING",
    kind=Kind.MISCONFIGURED,
    title="Git has no name for you",
    user_message="Nothing was changed: a commit needs a name and an address, and git has none for "
    "you ({reason}). Set them (git config --global user.name NAME, "
    "and user.email ADDRESS).",
    recovery=Recovery.FIX_INPUT,
):
    """Git has no name or address of the user."""

    reason: str


class GitCommitNotMade(
    Failure,
    code="GIT_COMMIT_NOT_MADE",
    kind=Kind.CONFLICT,
    title="Published, but not committed",
    user_message="The files are published, all of them, but no commit was made: {reason}. Commit "
    "them with git add and git commit, or take them back with: holdfast restore {checkpoint}",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT,),
):
    """A branch moved during a publish, so it does not have the prepared commit."""

    reason: str
    checkpoint: str
    branch: str
    commit: str


class GitBranchInvalid(
    Failure,
    code="GIT_BRANCH_INVALID",
    kind=Kind.INVALID,
    title="Not a name for a branch",
    user_message="Nothing was changed: git takes no branch of the name {branch}. Use letters, "
    "digits, and - or / between them.",
):
    """Git does not permit this branch name."""

    branch: str


class GitBranchExists(
    Failure,
    code="GIT_BRANCH_EXISTS",
    kind=Kind.CONFLICT,
    title="There is such a branch already",
    user_message="Nothing was changed: the repository has a branch {existing}, so {branch} cannot "
    "be made. Choose another name.",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """The branch name is taken, or conflicts with another."""

    branch: str
    existing: str


class GitCommitsMissing(
    Failure,
    code="GIT_COMMITS_MISSING",
    kind=Kind.MISSING,
    title="No commits to take",
    user_message="Nothing was changed: draft {draft} has no commits that the repository lacks, on "
    "the branch that it is on{others}. `holdfast publish --commit` makes one of its changes.",
):
    """A draft has no commits that the project lacks."""

    draft: str
    others: str


class GitObjectsRefused(
    Failure,
    code="GIT_OBJECTS_REFUSED",
    kind=Kind.BROKEN,
    title="The commits are not sound",
    user_message="Nothing was changed: what draft {draft} has in its repository was not taken "
    "({reason}). Its files can be published without its commits (holdfast publish --commit).",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """Objects or refs of a draft's repository are damaged, missing, or forbidden."""

    draft: str
    reason: str
