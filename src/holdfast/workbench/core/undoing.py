"""Decide how one operation is undone, from nothing but what is found.

The person may save, delete or create at any moment, also while we undo. So nobody relies on what
they did a moment ago: whoever undoes looks, takes one atomic step, and looks again, until there
is nothing to do. Killed in between, the next one begins by looking, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from holdfast.workbench.core.operations import Operation, Verb
from holdfast.workbench.model import Entry


class Deed(StrEnum):
    """One atomic step at a path of the project; it is refused when the world is not as thought."""

    EXCHANGE = "exchange"  # path and slot change places; both must be there
    PUT = "put"  # from the slot to the path, where nothing may be
    TAKE = "take"  # from the path into the slot, where nothing may be
    REMOVE_DIRECTORY = "remove_directory"  # at the path, if it is empty
    REMAKE_DIRECTORY = "remake_directory"  # as it was before, where nothing may be
    ADJUST = "adjust"  # mode and attributes of a directory become those after
    READJUST = "readjust"  # mode and attributes of a directory become those before


@dataclass(frozen=True, slots=True)
class Sight:
    """What is found for one operation."""

    at_path: Entry | None
    in_slot: Entry | None


def next_deed(operation: Operation, sight: Sight) -> Deed | None:
    """The step that brings the path closer to how it was; None when it is, or is theirs."""
    match operation.verb:
        case Verb.SWAP:
            return _unswap(operation, sight)
        case Verb.PUT:
            return _unput(operation, sight)
        case Verb.TAKE:
            is_away = sight.in_slot is not None and sight.at_path is None
            return Deed.PUT if is_away else None
        case Verb.REMOVE_DIRECTORY:
            return Deed.REMAKE_DIRECTORY if sight.at_path is None else None
        case Verb.ADJUST:
            return Deed.READJUST if sight.at_path == operation.after else None


def is_unknown(operation: Operation, in_slot: Entry | None) -> bool:
    """Whether what is in the slot is something of the person's that may be nowhere else."""
    if operation.verb is Verb.REMOVE_DIRECTORY:
        return False  # at most a directory that somebody was about to make again
    return in_slot not in (None, operation.before, operation.after)


def _unswap(operation: Operation, sight: Sight) -> Deed | None:
    if sight.in_slot is None or sight.at_path is None or sight.in_slot == operation.after:
        return None  # not begun or undone already; or they deleted the file, which is their right
    if sight.in_slot == operation.before:
        return Deed.EXCHANGE if sight.at_path == operation.after else None
    # Theirs came out: they had saved just before. Whatever of ours is in its place goes; if they
    # saved once more, the later one stays.
    is_newer = sight.in_slot.mtime_ns > sight.at_path.mtime_ns and not sight.at_path.is_directory
    goes_back = is_newer or sight.at_path in (operation.before, operation.after)
    return Deed.EXCHANGE if goes_back else None


def _unput(operation: Operation, sight: Sight) -> Deed | None:
    assert operation.after is not None
    if sight.at_path == operation.after and sight.in_slot is None:
        # A directory is not moved away: what a person puts into it would go along.
        return Deed.REMOVE_DIRECTORY if operation.after.is_directory else Deed.TAKE
    if sight.at_path == operation.after == sight.in_slot:
        return Deed.TAKE  # if it is one file of two names, who put it there was killed halfway
    theirs_came_out = is_unknown(operation, sight.in_slot) and sight.at_path is None
    return Deed.PUT if theirs_came_out else None
