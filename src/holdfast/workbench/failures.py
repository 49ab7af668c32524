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
