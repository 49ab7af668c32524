"""Where a project stands, laid out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.render.checkpoints import checkpoint_record
from holdfast.cli.render.drafts import draft_record
from holdfast.cli.render.status import (
    DraftStanding,
    LastFailure,
    Standing,
    status_page,
    status_record,
)
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath
from tests.cli.render.test_checkpoints import MADE
from tests.cli.render.test_drafts import DRAFT, DRAFT_ID

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
A, B = RelativePath.of("a"), RelativePath.of(b"b\x1b[2J")
FRESH = Standing(id="0" * 16, project="/home/me/\x1b[2J")
CLEAN = DraftStanding(draft=DRAFT, changed=1)
TROUBLE = DraftStanding(draft=DRAFT, changed=3, conflicts=(B,), merges=(A,), processes=2)
FAILURE = LastFailure(
    at_ms=1_060_000,
    deed="publish",
    wire={
        "title": "The disk is full",
        "userMessage": "Free some.",
        "actions": ["free_disk_space", "retry"],
    },
)
STANDING = Standing(
    id="0" * 16,
    project="/p",
    records="/s/meta",
    drafts=(CLEAN,),
    checkpoints=2,
    last=MADE,
    failure=FAILURE,
)


def test_a_project_that_nobody_worked_on() -> None:
    assert status_page(FRESH, PAGE, now=1120.0).splitlines() == [
        "/home/me/\\x1b[2J",
        "  no drafts; holdfast draft run -- COMMAND begins one",
        "  no checkpoints yet; holdfast checkpoint create makes one",
    ]


@pytest.mark.promise("R13")
def test_what_there_is_and_what_to_do_next() -> None:
    assert status_page(STANDING, PAGE, now=1120.0).splitlines() == [
        "/p",
        f"  + {DRAFT_ID}",
        "    overlay, 2 min ago, 1 change",
        "      2  1 min ago   x\\x1b[2J",
        "      1  2 min ago   make -j8",
        "    > holdfast draft diff, then publish",
        f"  2 checkpoints, the last 2 min ago: {MADE.id}",
        "  ! 1 min ago: The disk is full",
        "    Free some.",
        "    > free disk space, retry",
        "    reports: /s/meta/reports",
    ]


@pytest.mark.promise("R13")
def test_a_draft_in_trouble_says_what_it_is() -> None:
    page = status_page(replace(STANDING, drafts=(TROUBLE,)), PAGE, now=1120.0)

    assert page.splitlines()[1:3] == [
        f"  x {DRAFT_ID}",
        "    overlay, 2 min ago, 3 changes, 2 running",
    ]
    assert page.splitlines()[5:10] == [
        "    also changed in the project, to be merged:",
        "    a",
        "    in conflict with the project:",
        "    b\\x1b[2J",
        "    > holdfast publish --force PATH, or --only others",
    ]


def test_the_same_for_a_program() -> None:
    assert status_record(STANDING) == {
        "schema": 1,
        "type": "status",
        "id": "0" * 16,
        "project": "/p",
        "records": "/s/meta",
        "drafts": [
            {
                **draft_record(DRAFT),
                "changed": 1,
                "ignored": 0,
                "conflicts": [],
                "merges": [],
                "processes": 0,
            }
        ],
        "damaged": [],
        "checkpoints": 2,
        "lastCheckpoint": checkpoint_record(MADE),
        "lastFailure": {
            "at": "1970-01-01T00:17:40.000Z",
            "deed": "publish",
            "error": dict(FAILURE.wire),
        },
    }
    assert status_record(FRESH)["lastFailure"] is None
