"""A report says what a turn did and came to, and obeys nothing that is in it."""

from __future__ import annotations

import pytest

from holdfast.host.model import (
    AnyRecord,
    EventRecorded,
    PromptQueued,
    PublicationRecorded,
    RevisionRecorded,
    SessionOpened,
    TurnBegun,
    TurnClosed,
)
from holdfast.host.report_page import TouchedFile, report_page, report_record, turn_report
from holdfast.runners.model import (
    FilesChanged,
    QuestionAsked,
    TextCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
    UsageUpdated,
)

pytestmark = pytest.mark.promise("S3")

FAILED = TurnClosed(
    2, TurnEnding.FAILED, 9_000, {"code": "X", "phase": "p", "userMessage": "It <broke>."}
)
RECORDS: list[AnyRecord] = [
    SessionOpened("session_1", "/<p>", "draft_1", "rehearsal", 0),
    PromptQueued("a", 1, "Another turn", 0),
    EventRecorded(1, ToolStarted("t0", "run", "not mine")),
    PromptQueued("b", 2, "Mend <it>", 1_000),
    TurnBegun(2, 2_000),
    EventRecorded(2, ToolStarted("t1", "run", "make <all>")),
    EventRecorded(2, ToolEnded("t1", is_ok=False, status=2)),
    EventRecorded(2, ToolStarted("t2", "edit", "edit a")),
    EventRecorded(2, ToolEnded("t2", is_ok=True)),
    EventRecorded(2, ToolStarted("t3", "run", "sleep")),
    EventRecorded(2, FilesChanged("t2", ("a",))),
    EventRecorded(2, QuestionAsked("q", "May I?")),
    EventRecorded(2, UsageUpdated(model="m-1", input_tokens=1_200, output_tokens=30)),
    EventRecorded(2, TextCompleted("s", "Done <so far>.")),
    RevisionRecorded(2, 4, "cp_4"),
    PublicationRecorded(2, 1, "cp_3"),
]


def test_a_record_holds_all_that_a_person_wants_to_know() -> None:
    report = turn_report(RECORDS, FAILED, [TouchedFile("b", "added")])

    assert report_record(report) == {
        "schema": 1,
        "type": "turnReport",
        "session": "session_1",
        "turn": 2,
        "phase": "failed",
        "project": "/<p>",
        "draft": "draft_1",
        "runner": "rehearsal",
        "model": "m-1",
        "prompt": "Mend <it>",
        "text": "Done <so far>.",
        "beganAt": "1970-01-01T00:00:01+00:00",
        "endedAt": "1970-01-01T00:00:09+00:00",
        "steps": [
            {"tool": "run", "title": "make <all>", "ok": False, "status": 2},
            {"tool": "edit", "title": "edit a", "ok": True, "status": None},
            {"tool": "run", "title": "sleep", "ok": None, "status": None},
        ],
        "stepsCount": 3,
        "questions": 1,
        "files": [{"path": "b", "deed": "added"}],
        "filesCount": 1,
        "revision": 4,
        "checkpoint": "cp_4",
        "published": 1,
        "undo": "cp_3",
        "usage": {"type": "used", "model": "m-1", "input_tokens": 1200, "output_tokens": 30},
        "kept": [
            "All that was said and done: holdfast sessions show session_1",
            "The draft draft_1: holdfast draft diff --draft draft_1",
            "How this turn left it: revision 4, checkpoint cp_4",
            "The project as it was before: holdfast restore cp_3",
        ],
        "error": FAILED.failure,
    }


def test_without_a_revision_the_agents_own_word_counts() -> None:
    report = turn_report(RECORDS[:-2], FAILED, None)

    assert report.touched == [TouchedFile("a", "changed")]
    assert report_record(report)["checkpoint"] is None


def test_a_page_is_whole_and_escaped() -> None:
    page = report_page(turn_report(RECORDS, FAILED, None))

    for text in (
        "Turn 2 in /&lt;p&gt;",
        "Mend &lt;it&gt;",
        "Done &lt;so far&gt;.",
        "It &lt;broke&gt;.",
        "make &lt;all&gt;",
        "failed (2)",
        "interrupted, may or may not have completed",
        "1,200 tokens in",
        "asked the person",
        "1 time(s)",
        "cp_4",
    ):
        assert text in page
    for text in ("<it>", "<script", "http://", "https://", "not mine"):
        assert text not in page


def test_what_went_well_says_so() -> None:
    page = report_page(turn_report((), TurnClosed(1, TurnEnding.COMPLETED, 0), None))

    assert '<p class="good"><strong>Completed.</strong></p>' in page
    for absent in ("asked the person", "published", "Said last", "step", "file", "used so far"):
        assert absent not in page
