"""An editor is told everything once, in the words of its protocol."""

from __future__ import annotations

import acp
import pytest
from acp import schema

from holdfast.acp.model import Opened
from holdfast.acp.updates import Update, Updates, located, options_of, permission_call
from holdfast.host import Kept, Reconnecting, Seen, Shown
from holdfast.host.model import Happened, Prompted, Published, TurnBegun
from holdfast.runners.model import (
    AnyEvent,
    Asked,
    Choice,
    Delta,
    FilesChanged,
    Noticed,
    Planned,
    PlanStep,
    Progress,
    Said,
    Sort,
    Thought,
    ToolEnded,
    ToolStarted,
    TurnStarted,
    Used,
)

ABOUT = Opened("s", "/p", "", "", root="/copy")


def kept(*events: AnyEvent) -> list[Seen]:
    return [Kept(1, Happened(1, event)) for event in events]


def told(seen: list[Seen], *, is_replayed: bool = False) -> list[Update]:
    updates = Updates(ABOUT, is_replayed=is_replayed)
    return [update for each in seen for update in updates.of(each)]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Said("1", "Hi"), [acp.update_agent_message_text("Hi")]),
        (Thought("1", "Hm"), [acp.update_agent_thought_text("Hm")]),
        (Noticed("Wait"), [acp.update_agent_thought_text("Wait")]),
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
            Planned((PlanStep("a", Progress.DONE), PlanStep("b", Progress.BEGUN))),
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
            Used(context_tokens=5, window_tokens=10),
            [schema.UsageUpdate(used=5, size=10, session_update="usage_update")],
        ),
        (Used(context_tokens=5), []),
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
    seen: list[Seen] = [Kept(1, Published(1, 2))]

    assert told(seen) == [acp.update_agent_thought_text("The project has it now: 2 path(s).")]


def test_what_is_noticed_stands_by_itself() -> None:
    events = (Noticed("It is void."), Noticed("Trying again."), Said("1", "Hi"))

    assert told(kept(*events)) == [
        acp.update_agent_thought_text("It is void."),
        acp.update_agent_thought_text("\n\nTrying again."),
        acp.update_agent_message_text("\n\nHi"),
    ]


def test_what_was_told_piece_by_piece_is_not_told_again() -> None:
    pieces: list[Seen] = [
        Shown((Delta("1", Sort.TEXT, "Hel"), Delta("1", Sort.TEXT, "lo"))),
        Shown((Delta("2", Sort.OUTPUT, "noise"),)),
    ]

    assert told([*pieces, *kept(Said("1", "Hello"), Said("3", "Bye"))]) == [
        acp.update_agent_message_text("Hel"),
        acp.update_agent_message_text("lo"),
        acp.update_agent_message_text("\n\nBye"),
    ]


@pytest.mark.parametrize(
    ("event", "rest"),
    [
        (Said("1", "Hello"), [acp.update_agent_message_text("o")]),
        (Said("1", "Hell"), []),
        (Said("1", "Oh hello"), [acp.update_agent_message_text("Oh hello")]),
        (Thought("1", "Hello"), [acp.update_agent_thought_text("o")]),
        (Thought("1", "Oh hello"), []),
    ],
)
def test_of_what_was_told_in_pieces_what_is_missing_is_told(
    event: AnyEvent, rest: list[Update]
) -> None:
    """Pieces may be held back or left out; what is said arrives whole all the same."""
    sort = Sort.TEXT if isinstance(event, Said) else Sort.THOUGHT
    pieces: list[Seen] = [Shown((Delta("1", sort, "Hell"),))]

    assert told([*pieces, *kept(event)])[1:] == rest


def test_what_a_person_said_is_told_only_to_who_was_not_there() -> None:
    seen: list[Seen] = [
        Kept(1, Prompted("c", 1, "Go", 0)),
        Kept(2, TurnBegun(1, 0)),
        Reconnecting(1),
    ]

    assert told(seen) == []
    assert told(seen, is_replayed=True) == [acp.update_user_message_text("Go")]
    said = [*kept(Said("1", "Hi")), *seen, *kept(Said("2", "Ho"))]
    assert told(said)[1:] == [acp.update_agent_message_text("Ho")]


def test_a_question_is_offered_with_its_refusal() -> None:
    asked = Asked("q", "May I?", choices=(Choice("yes", "do it"), Choice("no", is_refusal=True)))

    assert options_of(asked) == [
        schema.PermissionOption(option_id="yes", name="do it", kind="allow_once"),
        schema.PermissionOption(option_id="no", name="no", kind="reject_once"),
    ]


@pytest.mark.promise("S1")
def test_a_permission_has_the_call_with_its_input_its_files_and_the_reason() -> None:
    asked = Asked("q", "May it run?", "It reaches the network.", item="i", is_approval=True)
    started = ToolStarted("i", "edit", "edit a", {"path": "a", "text": "x"})
    call = permission_call(asked, started, ABOUT)

    assert (call.tool_call_id, call.title, call.kind) == ("i", "edit a", "edit")
    assert call.raw_input == {"path": "a", "text": "x"}
    assert [each.path for each in call.locations or ()] == ["/p/a"]
    (content,) = call.content or ()
    assert content == acp.tool_content(acp.text_block("May it run?\nIt reaches the network."))


def test_a_permission_without_a_call_has_the_question_itself() -> None:
    call = permission_call(Asked("q", "May I?", "make it"), None, ABOUT)

    assert (call.tool_call_id, call.title, call.kind) == ("q", "May I?", None)
    assert call.raw_input == {"detail": "make it"}


def test_an_answer_that_lasts_is_told_as_such() -> None:
    words = ("once", "session", "always")
    asked = Asked(
        "q", "?", "", (*map(Choice, words), Choice("stop"), Choice("no", is_refusal=True))
    )
    kinds = [each.kind for each in options_of(asked)]

    assert kinds == ["allow_once", "allow_always", "allow_always", "reject_once", "reject_once"]
