"""Everything that the tutorial says is typed, and is seen as it says."""

from __future__ import annotations

import shutil
from xml.etree import ElementTree

import pytest

from tests.journeys.tutorial_stage import PAGE, followed, newcomer
from tests.parts.console_page import Reader, steps_of
from tests.parts.picture import text_of

PICTURE = PAGE.parents[1] / "terminal.svg"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("bash") is None, reason="bash is missing"),
]


@pytest.mark.skipif(shutil.which("pgrep") is None, reason="pgrep is missing (package procps)")
@pytest.mark.promise("A2")
def test_every_command_of_the_tutorial_does_what_is_shown() -> None:
    with newcomer() as screen:
        (made,) = followed(screen)

    # What the README shows was seen on the way, and would look the same today.
    kept = PICTURE.read_text(encoding="utf-8")
    assert text_of(made) == text_of(kept)
    assert [each.tag for each in ElementTree.fromstring(kept)] == [
        each.tag for each in ElementTree.fromstring(made)
    ]


@pytest.mark.parametrize("shown", ["two", "one\ntwo", "", "one…e"])
def test_a_page_that_shows_something_else_is_found_out(shown: str) -> None:
    page = f"```console\n$ echo one\n{shown}\n$ cd\n```\n".replace("\n\n", "\n")
    with newcomer() as screen, pytest.raises(AssertionError, match="echo one"):
        Reader(screen).follow(steps_of(page))


def test_names_are_learnt_and_what_is_left_out_may_be_anything() -> None:
    name = "cp_01m7gjdz2xyn6skt1tg45dfwbn"
    page = f"```console\n$ echo {'x' * 3}; echo cp_{'a' * 26}\n…\n{name}\n$ echo {name}\n…a\n```\n"
    with newcomer() as screen:
        Reader(screen).follow(steps_of(page))
