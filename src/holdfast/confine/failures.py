"""What can go wrong when a process is to be shut in."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class SandboxUnavailable(
    Failure,
    code="SANDBOX_UNAVAILABLE",
    kind=Kind.UNCONFINED,
    title="No sandbox",
    user_message="The command was not run, because it asks for a sandbox and there is none "
    "here ({reason}). Run `holdfast doctor` to see what is missing.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """A process must be confined, and cannot be."""

    reason: str


class SandboxFailed(
    Failure,
    code="SANDBOX_CREATE",
    kind=Kind.UNCONFINED,
    title="The sandbox did not start",
    user_message="The command was not run, because its sandbox could not be made: {reason}.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """There is a sandbox here, but this one could not be made."""

    reason: str


class SandboxRequestUnfit(
    Failure,
    code="SANDBOX_REQUEST_UNFIT",
    kind=Kind.INVALID,
    title="No such sandbox can be made",
    user_message="The command was not run, because the sandbox it asks for makes no sense: "
    "{reason}.",
):
    """A sandbox request contradicts itself, or would let the process escape."""

    reason: str


class PlaceUnavailable(
    Failure,
    code="PLACE_UNAVAILABLE",
    kind=Kind.UNCONFINED,
    title="No place of its own",
    user_message="This machine cannot give {directory} a view of its own ({reason}). "
    "Run `holdfast doctor` to see what is missing, or work on a copy.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """The kernel or the filesystem refuses the namespaces or the overlay."""

    directory: str
    reason: str


class PlaceHeld(
    Failure,
    code="PLACE_HELD",
    kind=Kind.CONFLICT,
    title="Place is already held",
    user_message="{directory} has a living holder already; join that one.",
    actions=(Action.WAIT,),
):
    """A second mount of one draft would break the first."""

    directory: str


class PlaceLost(
    Failure,
    code="PLACE_LOST",
    kind=Kind.LOST,
    title="The place is gone",
    user_message="The place of {directory} has no holder any more; its processes have ended. "
    "Its files are kept: open the place again.",
    actions=(Action.RESUME, Action.CANCEL),
):
    """The holder is dead, and everything inside died with it."""

    directory: str


class PlaceUncovered(
    Failure,
    code="PLACE_UNCOVERED",
    kind=Kind.CONFLICT,
    title="The place covers nothing now",
    user_message="Nothing was run or written: the directory that {directory} is a view of was "
    "removed or replaced, and what is done there would be done to the project itself. Its files "
    "are kept: end what runs there, then open the place again.",
    actions=(Action.RESUME, Action.CANCEL),
):
    """What a place was made over is no longer where it was."""

    directory: str


class ForeignOwners(
    Failure,
    code="PLACE_FOREIGN_OWNERS",
    kind=Kind.CONFLICT,
    title="Files of others",
    user_message="{directory} holds files of other users (such as {example}), which a view of it "
    "could not change. Work on a copy, or run as root.",
    recovery=Recovery.USE_ALTERNATIVE,
):
    """An ordinary user's view cannot carry files of other owners."""

    directory: str
    example: str


class PlaceStuck(
    Failure,
    code="PLACE_STUCK",
    kind=Kind.LATE,
    title="The place does not end",
    user_message="The place of {directory} was ended, but after {waited:g} s a process in it still "
    "waits for a device or a server (process {pid}). Nothing new was started; try again later.",
    actions=(Action.RETRY, Action.VIEW_REPORT),
):
    """All processes inside were killed, and the kernel has not yet reaped some of them."""

    directory: str
    pid: int
    waited: float
