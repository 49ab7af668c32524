"""What can go wrong between the program and the machine it runs on."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class DiskFull(
    Failure,
    code="DISK_FULL",
    kind=Kind.NOT_DURABLE,
    title="The disk is full",
    user_message="There is no space left for {path}. Nothing that was saved is lost; "
    "free some space and try again.",
    retryable=True,
    actions=(Action.FREE_DISK_SPACE, Action.RETRY, Action.CANCEL),
):
    """The file system has no room for what was to be written."""

    path: str


class DiskQuota(
    Failure,
    code="DISK_QUOTA",
    kind=Kind.NOT_DURABLE,
    title="The disk quota is used up",
    user_message="Your quota leaves no room for {path}. Nothing that was saved is lost; "
    "free some space or ask for more, and try again.",
    retryable=True,
    actions=(Action.FREE_DISK_SPACE, Action.RETRY, Action.CANCEL),
):
    """The quota of this user or project has no room for what was to be written."""

    path: str


class DiskReadOnly(
    Failure,
    code="DISK_READ_ONLY",
    kind=Kind.NOT_DURABLE,
    title="The disk is read-only",
    user_message="{path} is on a file system that takes no writes. "
    "Make it writable again, or choose another place in the settings.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """The file system was mounted, or turned itself, read-only."""

    path: str


class DiskIo(
    Failure,
    code="DISK_IO",
    kind=Kind.NOT_DURABLE,
    title="The disk failed",
    user_message="The disk reported an error at {path}, so the last change was not kept. "
    "Check the disk, and restart once it is sound.",
    actions=(Action.VIEW_REPORT, Action.RESTART_BACKEND),
):
    """The disk or its driver reported an I/O error (EIO)."""

    path: str
    reason: str


class DiskDenied(
    Failure,
    code="DISK_DENIED",
    kind=Kind.DENIED,
    title="Not allowed",
    user_message="{path} may not be used by this user. Change its owner or its permissions.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """The permissions of a file or directory deny the operation."""

    path: str


class DiskMissing(
    Failure,
    code="DISK_MISSING",
    kind=Kind.MISSING,
    title="No such file",
    user_message="{path} does not exist.",
):
    """A file or directory that was named does not exist."""

    path: str


class DiskOccupied(
    Failure,
    code="DISK_OCCUPIED",
    kind=Kind.CONFLICT,
    title="Something is already there",
    user_message="{path} exists already, and was left as it is.",
):
    """A file was to be made where something already is."""

    path: str


class DiskUnusable(
    Failure,
    code="DISK_UNUSABLE",
    kind=Kind.NOT_DURABLE,
    title="The file cannot be used",
    user_message="{path} could not be used as a file: {reason}.",
    actions=(Action.VIEW_REPORT, Action.OPEN_SETTINGS),
):
    """The system refused a file operation for a reason that has no name of its own."""

    path: str
    reason: str


class StoreReadOnly(
    Failure,
    code="STORE_READ_ONLY",
    kind=Kind.NOT_DURABLE,
    title="Saving has stopped",
    user_message="{path} takes no more changes since the disk failed to keep one ({cause}). "
    "It can still be read; check the disk, then restart.",
    actions=(Action.VIEW_REPORT, Action.RESTART_BACKEND),
):
    """A store no longer knows what is on disk, so it refuses writes and goes on serving reads."""

    path: str
    cause: str


class StoreTooNew(
    Failure,
    code="STORE_TOO_NEW",
    kind=Kind.MISCONFIGURED,
    title="Written by a newer version",
    user_message="{path} was written by a newer version of this program "
    "({schema} {found}; this one knows up to {newest}). Nothing was changed; update and try again.",
    actions=(Action.CANCEL,),
):
    """A store has a schema or format that is newer than ours."""

    path: str
    schema: str
    found: int
    newest: int


class StoreTooOld(
    Failure,
    code="STORE_TOO_OLD",
    kind=Kind.MISCONFIGURED,
    title="Written by a very old version",
    user_message="{path} is too old to be upgraded ({schema} {found}; the oldest is {oldest}). "
    "Nothing was changed; open it with a version in between first.",
    actions=(Action.CANCEL,),
):
    """A store has a schema from which no upgrade leads to ours."""

    path: str
    schema: str
    found: int
    oldest: int


class StoreForeign(
    Failure,
    code="STORE_FOREIGN",
    kind=Kind.CONFLICT,
    title="Not the store that was expected",
    user_message="{path} holds {found} where {expected} was expected. It was left as it is.",
):
    """A store exists where we look, and it is a store of something else."""

    path: str
    expected: str
    found: str


class JournalHeld(
    Failure,
    code="JOURNAL_HELD",
    kind=Kind.BUSY,
    title="In use elsewhere",
    user_message="Another process is writing {path}. Stop it, or wait until it ends.",
    actions=(Action.WAIT, Action.RETRY, Action.CANCEL),
):
    """Another writer holds the journal."""

    path: str


class JournalFenced(
    Failure,
    code="JOURNAL_FENCED",
    kind=Kind.STALE,
    title="Taken over",
    user_message="Another writer has taken over {path}. This one writes no more.",
    recovery=Recovery.NONE,
    actions=(Action.RESTART_BACKEND,),
):
    """A newer writer has the journal, or its file was replaced; we must not write any more."""

    path: str
    epoch: int


class RecordRefused(
    Failure,
    code="JOURNAL_RECORD_REFUSED",
    kind=Kind.INVALID,
    title="Not a record",
    user_message="A record was not kept: it cannot be written as one line of JSON ({reason}).",
):
    """A record has no form that a journal can keep and find again."""

    reason: str


class PathEscapes(
    Failure,
    code="PATH_ESCAPES",
    kind=Kind.DENIED,
    title="Leads outside",
    user_message="{path} leads out of {root} through a link, so nothing was done. "
    "Replace the link, or name the place it leads to.",
    recovery=Recovery.FIX_INPUT,
    actions=(Action.CANCEL,),
):
    """A path leaves the directory that it must stay below."""

    path: str
    root: str


class DatabaseUnavailable(
    Failure,
    code="DATABASE_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="The database is not available",
    user_message="{path} cannot be used now ({reason}). Nothing was changed; try again shortly.",
    actions=(Action.RETRY, Action.WAIT, Action.CANCEL),
):
    """A database could not be opened, or another process kept it to itself for too long."""

    path: str
    reason: str


class DatabaseDamaged(
    Failure,
    code="DATABASE_DAMAGED",
    kind=Kind.BROKEN,
    title="The database is damaged",
    user_message="{path} does not hold what was written to it ({reason}). "
    "Set the file aside and restore it from a copy; nothing was changed.",
    actions=(Action.RESTORE_CHECKPOINT, Action.VIEW_REPORT),
):
    """A file is not an SQLite database, or its structure is corrupt."""

    path: str
    reason: str


class DatabaseRefused(
    Failure,
    code="DATABASE_REFUSED",
    kind=Kind.CONFLICT,
    title="The change does not fit",
    user_message="The change was not made: {path} has a rule against it ({reason}).",
):
    """A constraint of the database rules out a change."""

    path: str
    reason: str


class PathUnfit(
    Failure,
    code="PATH_UNFIT",
    kind=Kind.CONFLICT,
    title="Not what is needed there",
    user_message="{path} cannot be used in this way: {reason}. It was left as it is.",
):
    """What a path names is of another sort than the operation needs."""

    path: str
    reason: str
