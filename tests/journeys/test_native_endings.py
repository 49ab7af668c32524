"""How a turn of our own agent ended is told the same way from the model to the exit status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.agent.failures import GoingInCircles
from holdfast.agent.loop import STOP_AT
from holdfast.agent.model import StopReason
from holdfast.agent.providers.registry import Format
from holdfast.agent.providers.scripted import ScriptedAnswer, ScriptedCall
from tests.cli.conversations import in_conversation, lines
from tests.cli.workbenches import Bench
from tests.journeys.native_stage import anchor, asked, new_session, serving, settle, told, use
from tests.journeys.stage import linux_only
from tests.parts.provider_server import ProviderServer, Reply
from tests.parts.provider_validators import validate

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), linux_only]

LATIN = "größe = 1\nname = 'x'\n".encode("latin-1")


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("A15")
async def test_an_answer_that_is_not_one_is_never_completed(bench: Bench) -> None:
    cut, empty = ScriptedAnswer(say="So f", stop=StopReason.LENGTH), ScriptedAnswer(think="Hm.")
    expected = [
        ([cut, ScriptedAnswer(say="ar, so good.")], "completed", "So far, so good.", None, 0),
        ([cut] * 4, "incomplete", "So f" * 4, "MODEL_ANSWER_INCOMPLETE", 1),
        ([empty] * 2, "incomplete", "", "MODEL_ANSWER_INCOMPLETE", 1),
        (
            [ScriptedAnswer(say="No.", stop=StopReason.REFUSED)],
            "refused",
            "No.",
            "MODEL_CONTENT_REFUSED",
            1,
        ),
        ([cut, use("look"), ScriptedAnswer(say="Well.")], "completed", "Well.", None, 0),
        ([ScriptedAnswer(say="Well.")], "completed", "Well.", None, 0),
    ]

    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        del server
        for answers, *_ in expected:
            yield from answers

    found: list[tuple[str, str, str | None, int]] = []
    async with serving(Format.MESSAGES, script) as server:
        settle(bench, Format.MESSAGES, there=server.url)
        words = new_session("Go.")
        for _ in expected:
            done = await asked(bench, *words)
            result = lines(done.stdout)[-1]
            error = result["error"] and result["error"]["code"]
            found.append((result["status"], result["text"], error, done.returncode))
            words = ("--session", result["session"], "--consent", "Go on.")
        for request in server.requests:
            validate(Format.MESSAGES, request.body)

    assert found == [tuple(each) for _, *each in expected]


@pytest.mark.promise("A1")
async def test_a_turn_that_only_edits_reports_its_revision(bench: Bench) -> None:
    """Also of a file that is not UTF-8, of which all other bytes stay."""
    (bench.project / "old.py").write_bytes(LATIN)

    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        yield use("read", path="old.py")
        change = {"operation": "replace", "start": anchor(server, "name"), "text": "name = 'y'"}
        yield use("edit", path="old.py", edits=[change])
        yield ScriptedAnswer(say="Done.")
        yield ScriptedAnswer(say="Nothing to do.")

    async with serving(Format.CHAT, script) as server:
        settle(bench, Format.CHAT, there=server.url)
        done = await asked(bench, *new_session("Rename it."))
        result = lines(done.stdout)[-1]
        idle = lines((await asked(bench, "--session", result["session"], "--consent", "?")).stdout)
    published = bench.ran("publish", "--yes")

    assert (result["status"], done.returncode) == ("completed", 0), done
    assert isinstance(result["revision"], int)
    assert (idle[-1]["status"], idle[-1]["revision"]) == ("completed", None)
    assert published.returncode == 0, published
    assert (bench.project / "old.py").read_bytes() == LATIN.replace(b"'x'", b"'y'")


@pytest.mark.promise("A1")
async def test_commands_that_change_files_without_a_word_are_not_taken_for_a_loop(
    bench: Bench,
) -> None:
    step = ScriptedCall("shell", {"command": "echo x >> f"})
    check = ScriptedCall("shell", {"command": "test -s f"})

    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        del server
        for _ in range(STOP_AT + 2):
            yield ScriptedAnswer(calls=(step, check))
        yield ScriptedAnswer(say="Done.")

    async with serving(Format.CHAT, script) as server:
        settle(bench, Format.CHAT, there=server.url)
        done = await asked(bench, *new_session("Go on until it is long."))
        assert "times by now" not in told(server)

    assert (lines(done.stdout)[-1]["status"], done.returncode) == ("completed", 0), done


@pytest.mark.promise("A1")
async def test_a_turn_that_repeats_itself_without_effect_ends_by_itself(bench: Bench) -> None:
    def script(server: ProviderServer) -> Iterator[ScriptedAnswer | Reply]:
        del server
        while True:
            yield use("shell", command="true")

    async with serving(Format.CHAT, script) as server:
        settle(bench, Format.CHAT, there=server.url)
        done = await asked(bench, *new_session("Go."))
        assert len(server.requests) == STOP_AT
        assert told(server).count("times by now") == 2

    result = lines(done.stdout)[-1]
    assert (result["status"], result["error"]["code"]) == ("failed", GoingInCircles.code)
    assert done.returncode == 5
