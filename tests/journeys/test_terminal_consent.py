"""Nothing leaves before the person in the terminal agrees, and what they typed is kept."""

from __future__ import annotations

from collections.abc import Iterator

import anyio.to_thread
import pytest

from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer
from tests.cli.conversations import in_conversation
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import serving, settle
from tests.journeys.terminal_stage import typed
from tests.parts.provider_server import ProviderServer, Reply
from tests.parts.pty_screen import PtyScreen

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(180), pytest.mark.promise("W12")]

READY = "idle · native"
QUESTION = "Do you agree? [y/n]"


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


def answers(_: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
    yield from (ScriptedAnswer(say=f"Answer {number}.") for number in range(1, 5))


async def test_a_person_is_asked_where_they_type(bench: Bench) -> None:
    async with serving(Format.MESSAGES, answers) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        await anyio.to_thread.run_sync(_talk, bench, server)


def _talk(bench: Bench, server: ProviderServer) -> None:
    with typed(bench, "--runner", "native", "--model", "there/some-model", "First") as screen:
        _refuse_and_agree(screen)
        assert len(server.requests) == 1
        _withdraw(screen)
        _agree_again(screen)
        assert len(server.requests) == 2


def _refuse_and_agree(screen: PtyScreen) -> None:
    screen.sees("→ Give consent (Enter)")
    screen.type("\r")
    screen.sees(QUESTION)
    screen.type("n\r")
    screen.shows(READY)
    screen.type("/retry\r")
    screen.until(lambda: screen.scrolled.count("→ Give consent") == 2, "the offer again")
    screen.type("\r")
    screen.until(lambda: screen.scrolled.count(QUESTION) == 2, "the question again")
    screen.type("y\r")
    screen.sees("Answer 1.")
    screen.shows(READY)


def _withdraw(screen: PtyScreen) -> None:
    screen.type("/consent\r")
    screen.sees("there  all  ")
    screen.shows(READY)
    screen.type("/consent revoke there\r")
    screen.sees("nothing of this project is sent to there")
    screen.shows(READY)


def _agree_again(screen: PtyScreen) -> None:
    """Something is half typed by now, and was not meant as an answer."""
    screen.type("Second\rhalf of a thou")
    screen.until(lambda: screen.scrolled.count("→ Give consent") == 3, "the offer once more")
    screen.until(lambda: ">" in screen.lines, "an empty line")
    screen.type("\r")
    screen.until(lambda: screen.scrolled.count(QUESTION) == 3, "the question once more")
    screen.type("y\r")
    screen.sees("Answer 2.")
    screen.type("ght")
    screen.until(lambda: "> half of a thought" in screen.lines, "what was typed")
