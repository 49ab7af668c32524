"""Drafts, laid out."""

from __future__ import annotations

from dataclasses import replace

from holdfast.cli.render.drafts import (
    cause_of,
    draft_record,
    drafts_page,
    opened_page,
    revision_record,
    revisions_page,
    undone_page,
)
from holdfast.cli.render.style import look
from holdfast.nouns import Id
from holdfast.workbench.model import Draft, DraftMode, Revision

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
NARROW = replace(PAGE, width=40)
DRAFT_ID = Id("dr_01jb3k9x7w2m4n6p8r0t1v3y5z")
MAKE = Revision(number=1, checkpoint=Id("cp_1"), at_ms=1_000_000, cause="make -j8")
HOSTILE = Revision(number=2, checkpoint=Id("cp_2"), at_ms=1_060_000, cause="x\x1b[2J")
DRAFT = Draft(
    id=DRAFT_ID, project="/p", mode=DraftMode.OVERLAY, at_ms=1_000_000, revisions=(MAKE, HOSTILE)
)


def test_a_line_for_each_draft() -> None:
    other = replace(DRAFT, mode=DraftMode.COPY, revisions=(MAKE,), at_ms=1_110_000)

    assert drafts_page([DRAFT, other], PAGE, now=1120.0) == (
        f"{DRAFT_ID}  overlay  2 min ago   2 revisions\n"
        f"{DRAFT_ID}  copy     10 s ago    1 revision\n"
    )
    assert drafts_page([DRAFT], NARROW, now=1120.0).splitlines() == [
        DRAFT_ID,
        "  overlay  2 min ago   2 revisions",
    ]


def test_a_new_draft_says_what_it_is_and_why_it_is_no_better() -> None:
    assert opened_page(DRAFT, PAGE).splitlines() == [
        f"+ {DRAFT_ID}",
        "  a layer over the project, at its own path: /p",
        "  > holdfast draft run -- COMMAND",
    ]
    copy = replace(DRAFT, mode=DraftMode.COPY, reason="there is no overlay here", left_out=("a",))
    assert opened_page(copy, PAGE).splitlines()[1:4] == [
        "  a copy: /p",
        "  A better mode is not available: there is no overlay here.",
        "  1 path(s) could not be copied and are not in it.",
    ]


def test_after_going_back_one_can_go_forward() -> None:
    back = replace(MAKE, number=3, back_to=1)

    assert undone_page(DRAFT, back, PAGE).splitlines() == [
        "+ Back to revision 1",
        f"  {DRAFT_ID}",
        "  > To take this back:",
        "    holdfast draft undo --to 2",
    ]
    assert undone_page(DRAFT, replace(MAKE, back_to=0), PAGE).splitlines() == [
        "+ Back to the project as it is",
        f"  {DRAFT_ID}",
    ]


def test_the_last_states_come_first() -> None:
    assert revisions_page([MAKE, HOSTILE], PAGE, now=1120.0) == (
        "      2  1 min ago   x\\x1b[2J\n      1  2 min ago   make -j8\n"
    )
    assert revisions_page([MAKE, HOSTILE], PAGE, now=1120.0, most=1).count("\n") == 1


def test_the_cause_of_a_revision_is_the_command() -> None:
    assert cause_of(["sh", "-c", "echo a > b"]) == "sh -c 'echo a > b'"


def test_a_draft_for_a_program() -> None:
    assert draft_record(replace(DRAFT, revisions=(MAKE,), base=Id("cp_0"))) == {
        "schema": 1,
        "type": "draft",
        "id": DRAFT_ID,
        "project": "/p",
        "mode": "overlay",
        "reason": None,
        "createdAt": "1970-01-01T00:16:40.000Z",
        "base": "cp_0",
        "revisions": [revision_record(MAKE)],
        "also": [],
        "leftOut": [],
    }
    assert revision_record(MAKE) == {
        "number": 1,
        "checkpoint": "cp_1",
        "createdAt": "1970-01-01T00:16:40.000Z",
        "cause": "make -j8",
    }
