"""What was interrupted, laid out."""

from __future__ import annotations

import pytest

from holdfast.cli.render.publications import (
    Righted,
    recovered_page,
    recovered_record,
    righted_records,
)
from holdfast.cli.render.style import look
from holdfast.nouns import RelativePath
from holdfast.workbench.model import Committed

PAGE = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=80)
UNDONE = Righted(what="project", is_finished=False)
FINISHED = Righted(
    what="dr_1",
    is_finished=True,
    theirs=(RelativePath.of("a"),),
    rescued=(RelativePath.of(b"b\x07"),),
)


@pytest.mark.promise("W4")
def test_it_is_said_which_way_it_went() -> None:
    assert recovered_page([UNDONE, FINISHED], PAGE).splitlines() == [
        "! An interrupted change of the project was undone: nothing of it is left.",
        "! An interrupted change of dr_1 was finished.",
        "  Changed by another program, and left unchanged:",
        "    a",
        "  What was written here meanwhile is in the store:",
        "    b\\x07",
    ]
    assert recovered_page([], PAGE) == ""


def test_the_same_for_a_program() -> None:
    assert recovered_record([UNDONE, FINISHED]) == {
        "schema": 1,
        "type": "recovery",
        "recovered": [
            {"what": "project", "way": "undone", "changedMeanwhile": [], "rescued": []},
            {"what": "dr_1", "way": "finished", "changedMeanwhile": ["a"], "rescued": ["b\\x07"]},
        ],
    }


@pytest.mark.promise("W14")
@pytest.mark.parametrize(
    ("problem", "said", "record"),
    [
        ("", "  Its commit is 0123456789ab.", ("0123456789abcdef", None)),
        (
            "main moved meanwhile",
            "  Its commit was not made: main moved meanwhile. Commit the files with git.",
            (None, "main moved meanwhile"),
        ),
    ],
)
def test_a_commit_that_was_to_be_made_is_told(
    problem: str, said: str, record: tuple[str | None, str | None]
) -> None:
    commit = Committed(id="0123456789abcdef", branch="main", problem=problem)
    one = Righted(what="project", is_finished=True, commit=commit)
    assert recovered_page([one], PAGE).splitlines()[-1] == said
    (found,) = righted_records([one])
    assert (found["commit"], found["commitProblem"]) == record
