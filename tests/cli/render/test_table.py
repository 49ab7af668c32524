"""The list of threads."""

from __future__ import annotations

import pytest

from holdfast.cli.render.style import FINE, Look
from holdfast.cli.render.table import Kept, age, kept, thread_line, threads_page

NOW = 1_700_000_000
HOSTILE = Kept(
    id="01a1-b",
    preview="Fix\n the   test\x1b[2J " + "日本" * 20,
    name="",
    cwd="/p",
    created=NOW - 9000,
    updated=NOW - 7200,
)
NAMED = Kept(id="01a1", preview="p", name="A name", cwd="", created=0, updated=0)


@pytest.mark.parametrize(
    ("passed", "text"),
    [
        (-5, "0 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7200, "2 h ago"),
        (86_400, "1 d ago"),
        (31 * 86_400, "2023-10-14"),
    ],
)
def test_when_that_was(passed: int, text: str) -> None:
    assert age(NOW - passed, now=NOW) == text


def test_one_line_each_that_fits() -> None:
    look = Look(60, is_coloured=False, signs=FINE)

    assert threads_page([HOSTILE, NAMED], look, now=NOW).splitlines() == [
        "01a1-b  2 h ago     Fix the test\\x1b[2J 日本日本日本日本日…",
        "01a1    1970-01-01  A name",
    ]


def test_on_a_narrow_terminal_the_id_stands_alone() -> None:
    look = Look(40, is_coloured=False, signs=FINE)

    assert threads_page([HOSTILE], look, now=NOW).splitlines() == [
        "01a1-b",
        "  2 h ago     Fix the test\\x1b[2J 日本…",
    ]


def test_a_record_for_a_program_has_it_as_it_came() -> None:
    assert thread_line(HOSTILE) == {
        "schema": 1,
        "type": "thread",
        "id": "01a1-b",
        "name": None,
        "preview": HOSTILE.preview,
        "cwd": "/p",
        "createdAt": "2023-11-14T19:43:20Z",
        "updatedAt": "2023-11-14T20:13:20Z",
    }


def test_what_is_odd_is_read_as_far_as_it_goes() -> None:
    odd = kept({"id": "x", "preview": 7, "name": None, "createdAt": "soon", "updatedAt": -1})

    assert odd == Kept(id="x", preview="", name="", cwd="", created=0, updated=0)
    assert kept({"preview": "nameless"}) is None
