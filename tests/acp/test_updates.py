"""An editor is told everything once, in the words of its protocol."""

from __future__ import annotations

import acp
import pytest
from acp import schema

from holdfast.acp.model import Opened
from holdfast.acp.updates import Update, Updates, located, options_of, permission_call
from holdfast.host import DeltasReceived, Reconnecting, RecordReceived, SupervisionEvent
from holdfast.host.model import EventRecorded, PromptQueued, PublicationRecorded, TurnBegun
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnStarted,
    UsageUpdated,
)

ABOUT = Opened("s", "/p", "", "", root="/copy")


def kept(*events: AnyEvent) -> list[SupervisionEvent]:
    return [RecordReceived(1, EventRecorded(1, event)) for event in events]


def told(seen: list[SupervisionEvent], *, is_replayed: bool = False) -> list[Update]:
    updates = Updates(ABOUT, is_replayed=is_replayed)
    return [update for each in seen for update in updates.of(each)]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (TextCompleted("1", "Hi"), [acp.update_agent_message_text("Hi")]),
        (ThinkingCompleted("1", "Hm"), [acp.update_agent_thought_text("Hm")]),
        (NoticeIssued("Wait"), [acp.update_agent_thought_text("Wait")]),
        (
            ToolStarted("1", "shell", "make", {"command": "make"}),
            [
                acp.start_tool_call(
                    "1",
                    "make",
                    kind="execute",
                    status="in_progress",
                    raw_input={"command": "make"},
                )
            ],
        ),
        (
            ToolStarted("1", "of tomorrow", "?"),
            [acp.start_tool_call("1", "?", kind="other", status="in_progress")],
        ),
        (
            ToolStarted("1", "edit", "edit a", {"paths": ["a", "/copy/b"]}),
            [
                acp.start_tool_call(
                    "1",
                    "edit a",
                    kind="edit",
                    status="in_progress",
                    locations=[
                        schema.ToolCallLocation(path="/p/a"),
                        schema.ToolCallLocation(path="/p/b"),
                    ],
                    raw_input={"paths": ["a", "/copy/b"]},
                )
            ],
        ),
        (
            ToolEnded("1", True, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n"),
            [
                acp.update_tool_call(
                    "1",
                    status="completed",
                    content=[acp.tool_diff_content("/p/x", "2\n", "1\n")],
                )
            ],
        ),
        (
            ToolEnded("1", True, "--- a/x\n+++ b/x\n(cut off)"),
            [
                acp.update_tool_call(
                    "1",
                    status="completed",
                    content=[
                        acp.tool_content(acp.text_block("--- a/x\n+++ b/x\n(cut off)")),
                    ],
                )
            ],
        ),
        (ToolEnded("1", True), [acp.update_tool_call("1", status="completed")]),
        (
            ToolEnded("1", False, "no"),
            [
                acp.update_tool_call(
                    "1", status="failed", content=[acp.tool_content(acp.text_block("no"))]
                )
            ],
        ),
        (
            FilesChanged("1", ("a",)),
            [acp.update_tool_call("1", locations=[schema.ToolCallLocation(path="/p/a")])],
        ),
        (
            PlanUpdated((PlanStep("a", PlanProgress.DONE), PlanStep("b", PlanProgress.BEGUN))),
            [
                acp.update_plan(
                    [
                        acp.plan_entry("a", status="completed"),
                        acp.plan_entry("b", status="in_progress"),
                    ]
                )
            ],
        ),
        (
            UsageUpdated(context_tokens=5, window_tokens=10),
            [schema.UsageUpdate(used=5, size=10, session_update="usage_update")],
        ),
        (UsageUpdated(context_tokens=5), []),
        (TurnStarted(), []),
    ],
)
def test_every_event_has_its_words(event: AnyEvent, expected: list[Update]) -> None:
    assert told(kept(event)) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/b", "/p/a/b"),
        ("./a/../b", "/p/b"),
        ("/p/a", "/p/a"),
        ("/copy/a", "/p/a"),
        ("/copy", "/p"),
        ("/copying/a", "/copying/a"),
        ("/etc/hosts", "/etc/hosts"),
    ],
)
def test_an_editor_is_told_where_a_file_of_the_project_is(path: str, expected: str) -> None:
    assert located(path, ABOUT) == expected
    assert located("a", ABOUT._replace(root="")) == "/p/a"


def test_that_the_project_has_it_is_told() -> None:
    seen: list[SupervisionEvent] = [RecordReceived(1, PublicationRecorded(1, 2))]

    assert told(seen) == [acp.update_agent_thought_text("The project has it now: 2 path(s).")]


def test_what_is_noticed_stands_by_itself() -> None:
    events = (NoticeIssued("It is void."), NoticeIssued("Trying again."), TextCompleted("1", "Hi"))

    assert told(kept(*events)) == [
        acp.update_agent_thought_text("It is void."),
        acp.update_agent_thought_text("\n\nTrying again."),
        acp.update_agent_message_text("\n\nHi"),
    ]


def test_what_was_told_piece_by_piece_is_not_told_again() -> None:
    pieces: list[SupervisionEvent] = [
        DeltasReceived((Delta("1", DeltaKind.TEXT, "Hel"), Delta("1", DeltaKind.TEXT, "lo"))),
        DeltasReceived((Delta("2", DeltaKind.OUTPUT, "noise"),)),
    ]

    assert told([*pieces, *kept(TextCompleted("1", "Hello"), TextCompleted("3", "Bye"))]) == [
        acp.update_agent_message_text("Hel"),
        acp.update_agent_message_text("lo"),
        acp.update_agent_message_text("\n\nBye"),
    ]


@pytest.mark.parametrize(
    ("event", "rest"),
    [
        (TextCompleted("1", "Hello"), [acp.update_agent_message_text("o")]),
        (TextCompleted("1", "Hell"), []),
        (TextCompleted("1", "Oh hello"), [acp.update_agent_message_text("Oh hello")]),
        (ThinkingCompleted("1", "Hello"), [acp.update_agent_thought_text("o")]),
        (ThinkingCompleted("1", "Oh hello"), []),
    ],
)
def test_of_what_was_told_in_pieces_what_is_missing_is_told(
    event: AnyEvent, rest: list[Update]
) -> None:
    """Pieces may be held back or left out; what is said arrives whole all the same."""
    sort = DeltaKind.TEXT if isinstance(event, TextCompleted) else DeltaKind.THOUGHT
    pieces: list[SupervisionEvent] = [DeltasReceived((Delta("1", sort, "Hell"),))]

    assert told([*pieces, *kept(event)])[1:] == rest


def test_what_a_person_said_is_told_only_to_who_was_not_there() -> None:
    seen: list[SupervisionEvent] = [
        RecordReceived(1, PromptQueued("c", 1, "Go", 0)),
        RecordReceived(2, TurnBegun(1, 0)),
        Reconnecting(1),
    ]

    assert told(seen) == []
    assert told(seen, is_replayed=True) == [acp.update_user_message_text("Go")]
    said = [*kept(TextCompleted("1", "Hi")), *seen, *kept(TextCompleted("2", "Ho"))]
    assert told(said)[1:] == [acp.update_agent_message_text("Ho")]


def test_a_question_is_offered_with_its_refusal() -> None:
    asked = QuestionAsked(
        "q", "May I?", choices=(AnswerChoice("yes", "do it"), AnswerChoice("no", is_refusal=True))
    )

    assert options_of(asked) == [
        schema.PermissionOption(option_id="yes", name="do it", kind="allow_once"),
        schema.PermissionOption(option_id="no", name="no", kind="reject_once"),
    ]


@pytest.mark.promise("S1")
def test_a_permission_has_the_call_with_its_input_its_files_and_the_reason() -> None:
    asked = QuestionAsked("q", "May it run?", "It reaches the network.", item="i", is_approval=True)
    started = ToolStarted("i", "edit", "edit a", {"path": "a", "text": "x"})
    call = permission_call(asked, started, ABOUT)

    assert (call.tool_call_id, call.title, call.kind) == ("i", "edit a", "edit")
    assert call.raw_input == {"path": "a", "text": "x"}
    assert [each.path for each in call.locations or ()] == ["/p/a"]
    (content,) = call.content or ()
    assert content == acp.tool_content(acp.text_block("May it run?\nIt reaches the network."))


def test_a_permission_without_a_call_has_the_question_itself() -> None:
    call = permission_call(QuestionAsked("q", "May I?", "make it"), None, ABOUT)

    assert (call.tool_call_id, call.title, call.kind) == ("q", "May I?", None)
    assert call.raw_input == {"detail": "make it"}


def test_an_answer_that_lasts_is_told_as_such() -> None:
    words = ("once", "session", "always")
    asked = QuestionAsked(
        "q",
        "?",
        "",
        (*map(AnswerChoice, words), AnswerChoice("stop"), AnswerChoice("no", is_refusal=True)),
    )
    kinds = [each.kind for each in options_of(asked)]

    assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once", "reject_once"]
