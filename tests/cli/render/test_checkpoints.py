"""Checkpoints, laid out."""

from __future__ import annotations

from dataclasses import replace

from holdfast.cli.render.checkpoints import (
    checkpoint_page,
    checkpoint_record,
    checkpoints_page,
    made_page,
    uncovered_record,
)
from holdfast.cli.render.style import look
from holdfast.nouns import Id, RelativePath
from holdfast.workbench.model import Checkpoint, Occasion, UncoveredPath, UncoveredReason

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
NARROW = replace(PAGE, width=40)
ID = Id("cp_01jb3k9x7w2m4n6p8r0t1v3y5z")
MADE = Checkpoint(
    id=ID,
    at_ms=1_000_000,
    occasion=Occasion.MANUAL,
    message="before the \x1b[31mbig change, which was very big",
    origin="published",
    tree=b"t" * 32,
    files=1234,
    size=5_000_000,
    uncovered=0,
)
LACKS = (
    UncoveredPath(RelativePath.of("a/secret"), UncoveredReason.UNREADABLE),
    UncoveredPath(RelativePath.of(b"odd\x07"), UncoveredReason.SPECIAL),
)


def test_a_line_for_each_checkpoint() -> None:
    other = replace(MADE, occasion=Occasion.PRE_RESTORE, files=7, message="")

    assert checkpoints_page([MADE, other], PAGE, now=1120.0).splitlines() == [
        f"{ID}  2 min ago   yours      1,234 files  before the...",
        f"{ID}  2 min ago   restore        7 files",
    ]
    assert checkpoints_page([MADE], NARROW, now=1120.0).splitlines() == [
        ID,
        "  2 min ago   yours      1,234 files",
        "  before the \\x1b[31mbig change, whic...",
    ]


def test_a_new_checkpoint_says_what_is_in_it_and_what_is_not() -> None:
    assert made_page(MADE, PAGE).splitlines() == [f"+ {ID}", "  1,234 files, 4.8 MiB"]
    lines = made_page(replace(MADE, uncovered=2), PAGE).splitlines()[2:]
    assert " ".join(line.strip() for line in lines) == (
        f"2 path(s) are not in it; holdfast checkpoint show {ID} says why."
    )


def test_one_checkpoint_with_all_that_it_lacks() -> None:
    assert checkpoint_page(MADE, LACKS, PAGE, now=1120.0).splitlines() == [
        ID,
        "  before the \\x1b[31mbig change, which was very big",
        "  yours, 2 min ago (1970-01-01T00:16:40.000Z)",
        "  1,234 files, 4.8 MiB",
        "  not in it, and never touched:",
        "    a/secret  (you may not read it)",
        "    odd\\x07  (a fifo, a socket or a device)",
    ]


def test_a_checkpoint_for_a_program() -> None:
    assert checkpoint_record(MADE) == {
        "schema": 1,
        "type": "checkpoint",
        "id": ID,
        "createdAt": "1970-01-01T00:16:40.000Z",
        "occasion": "manual",
        "message": MADE.message,
        "origin": "published",
        "tree": "74" * 32,
        "files": 1234,
        "bytes": 5_000_000,
        "uncoveredCount": 0,
    }
    assert uncovered_record(LACKS) == [
        {"path": "a/secret", "lack": "unreadable"},
        {"path": "odd\\x07", "lack": "special"},
    ]
