"""Who does not remember the name of a session is shown those about their project."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.conversations import asking, in_conversation, sessions
from tests.cli.workbenches import Bench
from tests.journeys.terminal_stage import at, typed


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def test_a_session_is_chosen_by_its_name_or_the_newest_by_enter(bench: Bench) -> None:
    with at(bench, '{say = "Hello"}') as screen:  # what it is called is what is typed first
        screen.type("Say hello\r")
        screen.shows("Hello")
    asking(bench, "Say goodbye", steps='{say = "Goodbye"}')
    newest, oldest = sessions(bench)

    with typed(bench, "--resume") as screen:
        screen.shows("Say goodbye")
        screen.shows("Say hello")
        screen.shows("Which one?")
        screen.type("nothing\r")
        screen.shows("None is called that")
        screen.type(f"{oldest['id'][-8:]}\r")
        screen.shows("idle")
        screen.shows("> Say hello")

    with typed(bench, "--resume", "--plain") as screen:
        screen.shows(f"Enter for {newest['id'][-8:]}")
        screen.type("\r")
        screen.shows("> Say goodbye")


def test_where_nobody_can_choose_it_is_said_how_to_name_one(bench: Bench) -> None:
    assert b"there is no session here" in bench.ran("--resume").stderr
    asking(bench, "Say hello", steps='{say = "Hello"}')
    refused = bench.ran("--resume")
    assert (refused.returncode, b"holdfast --resume ID" in refused.stderr) == (2, True)
