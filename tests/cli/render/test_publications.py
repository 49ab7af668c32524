"""What was published or restored, laid out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.render.publications import (
    Done,
    conflicts_page,
    done_page,
    done_record,
    overwritten_page,
)
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
A, B = RelativePath.of("a"), RelativePath.of(b"b\x1b[2J")
PUBLISHED = Done(deed="publish", key="k", undo="cp_1", paths=(A, B), count=2, draft="dr_1")
RESTORED = Done(deed="restore", key="k", undo="cp_2", paths=(A,), count=1, restored="cp_1")


@pytest.mark.promise("S2")
def test_what_was_published_can_be_taken_back() -> None:
    assert done_page(replace(PUBLISHED, remaining=3), PAGE).splitlines() == [
        "+ Published 2 paths",
        "    a",
        "    b\\x1b[2J",
        "  3 more in the draft; holdfast draft diff shows it.",
        "  > To take it back:",
        "    holdfast restore cp_1",
    ]


def test_what_was_restored_says_what_was_not_touched() -> None:
    done = replace(RESTORED, rescued=(A,), left=(B,))

    assert done_page(done, PAGE).splitlines() == [
        "+ Restored 1 path",
        "    a",
        "  Content that another program wrote meanwhile is in the store:",
        "    a",
        "  Not touched, because they are not covered:",
        "    b\\x1b[2J",
        "  > To take it back:",
        "    holdfast restore cp_2",
    ]


@pytest.mark.promise("W3")
def test_what_a_restore_removed_is_not_called_restored_alone() -> None:
    done = replace(RESTORED, paths=(A, B), count=2, removed=1)

    assert done_page(done, PAGE).splitlines() == [
        "+ Restored 2 paths",
        "    a",
        "    b\\x1b[2J",
        "  1 of these was made since then and is removed.",
        "  > To take it back:",
        "    holdfast restore cp_2",
    ]
    assert done_record(done)["removed"] == 1
    kept = done_page(replace(done, left=(A,), keeps_new=True), PAGE)
    assert "  Not touched, because they are new or not covered:\n    a\n" in kept


def test_where_nothing_was_to_be_done_nothing_can_be_taken_back() -> None:
    nothing = Done(deed="publish", key="", undo=None, paths=(), count=0, draft="dr_1")

    assert done_page(nothing, PAGE).splitlines() == [
        "+ Nothing to publish",
        "  The project is like that already.",
    ]


def test_a_publication_for_a_program() -> None:
    assert done_record(replace(PUBLISHED, remaining=3)) == {
        "schema": 1,
        "type": "publish",
        "key": "k",
        "draft": "dr_1",
        "restored": None,
        "checkpointBefore": "cp_1",
        "paths": ["a", "b\\x1b[2J"],
        "count": 2,
        "remaining": 3,
        "ignored": 0,
        "rescued": [],
        "notTouched": [],
        "undo": "holdfast restore cp_1",
    }


def test_conflicts_say_what_can_be_done() -> None:
    assert conflicts_page([], [], PAGE) == ""
    assert conflicts_page([(B, "both changed")], [A], PAGE).splitlines() == [
        "! Changed in the project, too; publishing merges these in the draft first:",
        "    a",
        "x In conflict with the project:",
        "    b\\x1b[2J  (both changed)",
        "  > holdfast draft merge PATH brings the project's into the draft; holdfast",
        "  publish --force PATH takes the draft's; --only leaves them out.",
    ]


def test_what_is_overwritten_is_said_before() -> None:
    assert overwritten_page([], PAGE) == ""
    assert overwritten_page([A], PAGE).splitlines() == [
        "! Changed in the project, too; a checkpoint keeps that:",
        "    a",
    ]
