"""Sessions on a page: narrow or wide, they are named, dated and never obeyed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.cli.render.sessions import (
    SeenSession,
    conversation_page,
    line_of,
    session_record,
    sessions_page,
)
from holdfast.cli.render.style import Look, look
from holdfast.host.model import (
    AttemptStarted,
    EventRecorded,
    PromptQueued,
    SteeringAccepted,
    TurnClosed,
)
from holdfast.runners.model import TextCompleted, ToolStarted, TurnEnding

SEEN = SeenSession(
    id="session_0123456789",
    name="23456789",
    project="/p",
    draft="draft_1",
    runner="rehearsal",
    title="Mend the\nfailing \x1b[31mtest, please, and then write down what was wrong",
    at_ms=940_000,
    turns=2,
    phase="running",
    is_hosted=True,
)


def wide(columns: int) -> Look:
    return look(
        wanted="never", is_terminal=True, colourless=True, encoding="utf-8", columns=columns
    )


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_session_is_one_line_however_narrow(columns: int) -> None:
    page = sessions_page([SEEN], wide(columns), now=1000)

    assert page.startswith("23456789  running  ")
    assert "Mend the" in page
    assert page.count("\n") == 1
    assert len(page) <= columns + 1
    assert page[:-1].isprintable()


def test_a_session_without_a_host_rests() -> None:
    resting = replace(SEEN, is_hosted=False)

    assert "stopped" in sessions_page([resting], wide(80), now=1000)


@pytest.mark.promise("A12", "A15")
def test_an_open_turn_without_a_host_is_interrupted() -> None:
    left = replace(SEEN, is_hosted=False, phase="interrupted")
    resting = replace(SEEN, is_hosted=False, phase="idle")

    lines = sessions_page([left, resting], wide(80), now=1000).splitlines()
    assert [line[10:23] for line in lines] == ["interrupted  ", "stopped      "]


@pytest.mark.promise("A6")
@pytest.mark.parametrize("columns", [40, 80])
def test_a_journal_that_was_repaired_is_marked(columns: int) -> None:
    page = sessions_page([replace(SEEN, is_repaired=True)], wide(columns), now=1000)
    assert "(journal repaired)" in page
    assert session_record(replace(SEEN, is_repaired=True))["repaired"] is True


def test_a_program_reads_all_of_it() -> None:
    assert session_record(SEEN) == {
        "schema": 1,
        "type": "session",
        "id": SEEN.id,
        "project": "/p",
        "draft": "draft_1",
        "runner": "rehearsal",
        "title": SEEN.title,
        "atMs": 940_000,
        "turns": 2,
        "phase": "running",
        "hosted": True,
        "repaired": False,
    }


def test_a_conversation_reads_from_top_to_bottom() -> None:
    records = [
        AttemptStarted(1, 0),
        PromptQueued("c", 1, "Do\x1bit", 0),
        EventRecorded(1, ToolStarted("a", "run", "make")),
        EventRecorded(1, TextCompleted("b", "Done.")),
        TurnClosed(1, TurnEnding.FAILED, 0, {"userMessage": "Nothing came of it."}),
    ]

    assert conversation_page(records, wide(80)) == (
        "\n> Do\\x1bit\n▸ make\nDone.\n✗ Nothing came of it.\n"
    )


def test_a_list_names_the_project_and_a_page_what_was_added_to_a_turn() -> None:
    page = sessions_page([replace(SEEN, project="/work/my-basket")], wide(80), now=1000)

    assert "  my-basket  " in page
    assert "/work" not in page
    assert line_of(SteeringAccepted("c", 1, "Mind\x1b this"), wide(80)) == "» Mind\\x1b this\n"
