"""What undoing does, for everything that can be found."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.workbench.model import PathEntry
from holdfast.workbench.transaction.machine import (
    Observation,
    PathAction,
    PathOperation,
    Verb,
    is_foreign,
    next_undo_action,
)
from tests.workbench.modelled import at, directory, file

BASE, OURS, THEIRS = file("base"), file("ours"), file("theirs")
LATER = replace(file("later"), mtime_ns=1)
WAS, IS, ELSE = directory(0o755), directory(0o700), directory(0o711)

SWAP = PathOperation(Verb.SWAP, at("x"), BASE, OURS, 0)
PUT = PathOperation(Verb.PUT, at("x"), None, OURS, 0)
PUT_DIRECTORY = PathOperation(Verb.PUT, at("x"), None, WAS, 0)
TAKE = PathOperation(Verb.TAKE, at("x"), BASE, None, 0)
REMOVE = PathOperation(Verb.REMOVE_DIRECTORY, at("x"), WAS, None, 0)
ADJUST = PathOperation(Verb.ADJUST, at("x"), WAS, IS, 0)


@pytest.mark.parametrize(
    ("operation", "at_path", "in_slot", "expected"),
    [
        (SWAP, BASE, OURS, None),  # it was not begun
        (SWAP, THEIRS, OURS, None),
        (SWAP, None, OURS, None),
        (SWAP, OURS, BASE, PathAction.EXCHANGE),  # it was carried out
        (SWAP, THEIRS, BASE, None),  # and then they saved
        (SWAP, None, BASE, None),  # or deleted it
        (SWAP, OURS, THEIRS, PathAction.EXCHANGE),  # they had saved just before
        (SWAP, BASE, THEIRS, PathAction.EXCHANGE),  # they saved just before it was undone
        (SWAP, LATER, THEIRS, None),  # they saved again: what they had before is rescued
        (SWAP, THEIRS, LATER, PathAction.EXCHANGE),  # and again just before that was put back
        (SWAP, WAS, LATER, None),
        (SWAP, BASE, None, None),
        (PUT, None, OURS, None),
        (PUT, THEIRS, OURS, None),
        (PUT, OURS, OURS, PathAction.TAKE),  # it got its second name, and kept the first
        (PUT, OURS, None, PathAction.TAKE),
        (PUT, THEIRS, None, None),
        (PUT, None, None, None),
        (PUT, None, THEIRS, PathAction.PUT),  # they saved just before it was taken away
        (PUT, LATER, THEIRS, None),
        (PUT_DIRECTORY, WAS, None, PathAction.REMOVE_DIRECTORY),
        (PUT_DIRECTORY, ELSE, None, None),
        (PUT_DIRECTORY, None, WAS, None),
        (TAKE, BASE, None, None),
        (TAKE, None, BASE, PathAction.PUT),
        (TAKE, None, THEIRS, PathAction.PUT),
        (TAKE, THEIRS, BASE, None),
        (TAKE, None, None, None),  # they deleted it, too
        (REMOVE, None, None, PathAction.REMAKE_DIRECTORY),
        (REMOVE, None, ELSE, PathAction.REMAKE_DIRECTORY),  # somebody was killed who remade it
        (REMOVE, WAS, None, None),
        (REMOVE, THEIRS, None, None),
        (ADJUST, IS, None, PathAction.READJUST),
        (ADJUST, WAS, None, None),
        (ADJUST, ELSE, None, None),
        (ADJUST, None, None, None),
    ],
)
def test_the_next_deed(
    operation: PathOperation,
    at_path: PathEntry | None,
    in_slot: PathEntry | None,
    expected: PathAction | None,
) -> None:
    assert next_undo_action(operation, Observation(at_path, in_slot)) is expected


@pytest.mark.parametrize(
    ("operation", "in_slot", "expected"),
    [
        (SWAP, OURS, False),
        (SWAP, BASE, False),
        (SWAP, None, False),
        (SWAP, THEIRS, True),
        (SWAP, file("base", 0o600), True),
        (PUT, THEIRS, True),
        (TAKE, THEIRS, True),
        (TAKE, BASE, False),
        (REMOVE, ELSE, False),
    ],
)
def test_what_must_be_rescued(
    operation: PathOperation, in_slot: PathEntry | None, expected: bool
) -> None:
    assert is_foreign(operation, in_slot) is expected
