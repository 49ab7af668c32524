"""What can go wrong between a person's project and what is kept of it."""

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
    """Another process has the store of this project open."""

    path: str


class ObjectDamaged(
    Failure,
    code="WORKBENCH_OBJECT_DAMAGED",
    kind=Kind.BROKEN,
    title="Something kept is damaged",
    user_message="What {path} holds at {offset} is not what was written there ({reason}). Only "
    "checkpoints that contain it are spoiled; choose another one.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """The bytes of an object in a segment contradict its checksum or its name."""

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
    "spoiled; choose another one.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """No segment holds an object that something refers to."""

    object: str


class CheckpointMissing(
    Failure,
    code="CHECKPOINT_MISSING",
    kind=Kind.MISSING,
    title="No such checkpoint",
    user_message="There is no checkpoint {checkpoint}; `holdfast checkpoint list` shows all.",
):
    """No checkpoint has the id that was given."""

    checkpoint: str


class PublishedChanged(
    Failure,
    code="CONFLICT_PUBLISHED_CHANGED",
    kind=Kind.CONFLICT,
    title="The project changed meanwhile",
    user_message="Nothing was published: {paths} changed in the project since the draft began. "
    "The draft is kept; merge the changes into it, or say file by file which to overwrite.",
    actions=(
        Action.MERGE_INTO_DRAFT,
        Action.FORCE,
        Action.PUBLISH_PARTIAL,
        Action.SEND_TO_AGENT,
    ),
):
    """Somebody else changed what a publication would replace."""

    paths: tuple[str, ...]


class BatchRefused(
    Failure,
    code="BATCH_REFUSED",
    kind=Kind.INVALID,
    title="The changes do not fit",
    user_message="None of the changes was made, because not all of them can be: {reasons}.",
    actions=(Action.REGENERATE, Action.CANCEL),
):
    """A change of a batch contradicts the draft, or another one of the same batch."""

    reasons: tuple[str, ...]


class BatchStale(
    Failure,
    code="BATCH_STALE",
    kind=Kind.STALE,
    title="The draft has moved on",
    user_message="None of the changes was made: {paths} changed in the draft meanwhile. "
    "Have the changes made anew from the draft as it is.",
    actions=(Action.REGENERATE, Action.REVIEW_DRAFT, Action.CANCEL),
):
    """A batch that is tried again meets a draft that it does not know."""

    paths: tuple[str, ...]


class ConsentRequired(
    Failure,
    code="EGRESS_CONSENT_REQUIRED",
    kind=Kind.NEEDS_APPROVAL,
    title="Nobody agreed to send this",
    user_message="Nothing was sent to {provider}, because nobody has agreed that it may see "
    "{scope} of {project}. Agree to it first.",
    actions=(Action.GIVE_CONSENT, Action.CANCEL),
):
    """Something of a project would go to a provider that the person did not agree to."""

    project: str
    provider: str
    scope: str


class MarkerDamaged(
    Failure,
    code="WORKBENCH_MARKER_DAMAGED",
    kind=Kind.BROKEN,
    title="An unfinished publication cannot be read",
    user_message="What was written down about an unfinished publication is damaged ({reason}), "
    "so it is neither finished nor undone. Restore the checkpoint that was made before it.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """The marker of a transaction is not what was written."""

    reason: str
