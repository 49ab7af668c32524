"""Failures of paths, cursors and ids that a caller passed in."""

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
    user_message="{cursor} is not a position in a log. Start from the beginning, or use the "
    "cursor of the last event that was received.",
):
    """A text is not a position in a log."""

    cursor: str


class IdInvalid(
    Failure,
    code="ID_INVALID",
    kind=Kind.INVALID,
    title="Not an id",
    user_message="{id} is not an id that begins with {prefix}_. Copy the whole id from "
    "where it was shown.",
):
    """A text is not an id of the kind that was asked for."""

    id: str
    prefix: str
