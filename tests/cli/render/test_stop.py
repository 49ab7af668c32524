"""What is to be ended, as it is shown."""

from __future__ import annotations

import pytest

from holdfast.cli.render.stop import (
    Belonging,
    RunningTurn,
    Sort,
    consent,
    same,
    stop_page,
    stop_record,
    turns_page,
)

FOUND = (
    Belonging(Sort.SERVER, 12, "/s/exec"),
    Belonging(Sort.KEEPER, 345, "/s/exec", 2, "/s/exec"),
    Belonging(Sort.PLACE, 6, "/p\x1b[2J", 1, "/s/draft"),
)


def test_a_line_for_each() -> None:
    assert stop_page(FOUND).splitlines() == [
        "  exec-server       12  /s/exec",
        "  keeper           345  /s/exec (with 2 processes)",
        "  place              6  /p\\x1b[2J (with 1 process), kept in /s/draft",
    ]


def test_a_record_for_a_program() -> None:
    turns = [RunningTurn("s1", "/p", "do it")]
    assert stop_record(FOUND[1:2], turns, is_ended=True) == {
        "schema": 1,
        "type": "stop",
        "ended": True,
        "found": [
            {
                "kind": "keeper",
                "pid": 345,
                "where": "/s/exec",
                "processes": 2,
                "kept": "/s/exec",
            }
        ],
        "turns": [{"session": "s1", "project": "/p", "prompt": "do it"}],
    }


def test_running_turns_are_named_one_line_each() -> None:
    turns = [RunningTurn("s1", "/p", "do\nit"), RunningTurn("s2", "/q", "\x1b[2J" + "x" * 80)]
    assert turns_page([]) == ""
    assert turns_page(turns).splitlines() == [
        "Turns that are running, and would be stopped:",
        "  s1  /p: do it",
        f"  s2  /q: \\x1b[2J{'x' * 50}...",
    ]


def test_only_what_was_agreed_to_is_ended() -> None:
    now = [FOUND[0], Belonging(Sort.ORPHAN, 345, "sleep"), Belonging(Sort.PLACE, 6, "/p", 3)]

    assert same(FOUND, now) == [now[0], now[2]]


@pytest.mark.parametrize(
    ("line", "answer"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("what\n", None)],
)
def test_only_a_yes_is_a_yes(line: str, answer: bool | None) -> None:
    assert consent(line) is answer
