"""What can be wrong with a path, a cursor, a lease or an id that someone gave us."""

from __future__ import annotations

from holdfast.failures import Failure, Kind


class PathInvalid(
    Failure,
    code="PATH_INVALID",
    kind=Kind.INVALID,
    title="Not a usable path",
    user_message="{path} cannot be used as a path: {reason}. Give a path relative to the project.",
):
    """A path is not one that can lie below a root."""

    path: str
    reason: str


class CursorInvalid(
    Failure,
    code="CURSOR_INVALID",
    kind=Kind.INVALID,
    title="Unknown position",
    user_message="{cursor} is no position in a log; start from the beginning or from the last "
    "one that was given out.",
):
    """A text is not a position in a log."""

    cursor: str


class LeaseInvalid(
    Failure,
    code="LEASE_INVALID",
    kind=Kind.INVALID,
    title="Not a lease",
    user_message="{lease} is not a lease; ask for one before taking the work over.",
):
    """A text does not name a holder and a generation."""

    lease: str


class IdInvalid(
    Failure,
    code="ID_INVALID",
    kind=Kind.INVALID,
    title="Not an id",
    user_message="{id} is not an id that begins with {prefix}_; copy it whole from where it "
    "was shown.",
):
    """A text is not an id of the kind that was asked for."""

    id: str
    prefix: str
