"""Codex that cannot be used says why, and is asked about what it does in our words."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import anyio
import pytest

from holdfast.agent import McpServerConfig
from holdfast.codex import app_server
from holdfast.codex import subscriptions as following
from holdfast.runners import codex
from holdfast.runners.codex import CodexConversation, CodexRunner
from holdfast.runners.failures import RunnerUnavailable
from holdfast.runners.model import (
    AnyEvent,
    NoticeIssued,
    QuestionAsked,
    TextCompleted,
    TurnEnded,
    TurnEnding,
    WaitingReported,
)
from holdfast.runners.testing import RunnerJournal
from tests.contracts.test_runners import stage_in
from tests.journeys.stage import linux_only
from tests.parts import fake_app_server
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Hang
from tests.parts.model_server import ModelServer

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("program", ["/nowhere/codex", "/bin/false", "/bin/cat"])
async def test_what_is_no_codex_is_unavailable(tmp_path: Path, program: str) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        runner = CodexRunner(stage, program)
        health = await runner.health()
        with pytest.raises(RunnerUnavailable) as caught:
            async with runner.converse(None, RunnerJournal()):
                pass

    assert (health.is_healthy, bool(health.reason)) == (False, True)
    assert "npm install" in caught.value.user_message


async def test_a_turn_is_left_although_all_that_belongs_to_it_is_cancelled(tmp_path: Path) -> None:
    acts = {"say": "a"}, {"until": "nothing"}
    async with playing(tmp_path, *acts) as runner:
        with anyio.CancelScope() as scope:
            async with (
                runner.converse(None, RunnerJournal()) as conversation,
                aclosing(conversation.take_turn("x")) as turn,
            ):
                async for batch in turn:
                    if any(isinstance(each, TextCompleted) for each in batch):
                        scope.cancel()

    assert scope.cancelled_caught


async def test_a_turn_that_has_hardly_begun_is_ended_by_who_leaves_it(tmp_path: Path) -> None:
    async with conversing(tmp_path, {"until": "nothing"}) as conversation:
        await told(conversation, object)

    assert [m["method"] for m in heard(tmp_path)][-1] == "turn/interrupt"


async def test_what_was_asked_in_a_turn_is_asked_no_more_after_it(tmp_path: Path) -> None:
    async with conversing(tmp_path, {"approve": "command"}) as conversation:
        asked = await told(conversation, QuestionAsked)
        assert isinstance(asked, QuestionAsked)

        assert not await conversation.answer(asked.question, "yes")


async def test_a_turn_that_can_be_followed_no_more_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ITEMS_MAX", 0)
    async with conversing(tmp_path, {"until": "nothing"}) as conversation:
        ended = await told(conversation, TurnEnded)

    assert isinstance(ended, TurnEnded)
    assert ended.ending is TurnEnding.FAILED
    assert "turn/interrupt" in [m["method"] for m in heard(tmp_path)]


TOOL = {
    "notify": "item/started",
    "params": {
        "threadId": "$thread",
        "turnId": "$turn",
        "startedAtMs": 0,
        "item": {
            **{"type": "commandExecution", "id": "i1", "command": "make", "commandActions": []},
            **{"cwd": "/nowhere", "status": "inProgress"},
        },
    },
}


@pytest.fixture
def is_soon_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codex, "WAITING_TOLD", 0.1)


@pytest.mark.promise("A5", "A9")
@pytest.mark.usefixtures("is_soon_silent")
@pytest.mark.parametrize(
    ("acts", "what"), [((), "codex/fake"), ((TOOL,), "codex")], ids=["model", "tool"]
)
async def test_a_silent_codex_that_answers_is_waited_for(
    tmp_path: Path, acts: tuple[Mapping[str, object], ...], what: str
) -> None:
    async with conversing(tmp_path, *acts, {"until": "nothing"}) as conversation:
        waits = await awaited(conversation, what, count=3)

    assert waits == sorted(waits)
    assert waits[0] >= 0.1


@linux_only
@pytest.mark.promise("A5", "A9")
@pytest.mark.usefixtures("is_soon_silent")
async def test_the_real_codex_answers_while_its_model_is_silent(tmp_path: Path) -> None:
    program = str(codex_binary())
    async with ModelServer([[Hang()]]) as model, stage_in(tmp_path, tmp_path) as stage:
        env = {**stage.environment, **codex_home(tmp_path / "codex", model.url)}
        runner = CodexRunner(replace(stage, environment=env), program)
        async with runner.converse(None, RunnerJournal()) as conversation:
            assert await awaited(conversation, "codex/gpt-5.5", count=3)


@pytest.mark.promise("A5")
@pytest.mark.usefixtures("is_soon_silent")
async def test_a_codex_that_does_not_answer_is_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears nothing, and says something in the end: until then no word of waiting."""
    monkeypatch.setattr(app_server, "_HEALTH_LIMIT", 0.2)
    acts = {"deaf": None}, {"sleep": 2.0}, {"say": "a"}, {"end": "completed"}
    async with (
        conversing(tmp_path, *acts) as conversation,
        aclosing(conversation.take_turn("x")) as turn,
    ):
        seen = [each async for batch in turn for each in batch]

    assert isinstance(seen[-1], TurnEnded)
    assert not [each for each in seen if isinstance(each, WaitingReported)]


@pytest.mark.promise("A5")
@pytest.mark.usefixtures("is_soon_silent")
async def test_codex_is_not_pinged_while_a_person_is_asked(tmp_path: Path) -> None:
    def pings() -> int:
        return [m["method"] for m in heard(tmp_path)].count("thread/list")

    acts = {"approve": "command"}, {"end": "completed"}
    pinged: list[int] = []
    async with (
        conversing(tmp_path, *acts) as conversation,
        aclosing(conversation.take_turn("x")) as turn,
    ):
        async for batch in turn:
            for each in batch:
                if isinstance(each, QuestionAsked):
                    before = pings()
                    await anyio.sleep(1.0)
                    pinged.append(pings() - before)
                    await conversation.answer(each.question, "yes")

    assert pinged[0] <= 1  # one may have been on its way


@pytest.mark.promise("S1")
@pytest.mark.parametrize("session", [None, "t-1"])
async def test_a_thread_that_codex_refuses_with_servers_goes_on_without(
    tmp_path: Path, session: str | None
) -> None:
    method = "thread/start" if session is None else "thread/resume"
    refusal = [{"refuse": -32600, "message": "no such setting\n"}]
    on = {"config/read": [[{"answer": {"config": {}}}]], method: [refusal, None]}
    server = McpServerConfig("a", True, "node", env={"K": "v"})
    async with (
        playing(tmp_path, {"end": "completed"}, on=on, servers=(server,)) as runner,
        runner.converse(session, RunnerJournal()) as conversation,
    ):
        noticed = await told(conversation, NoticeIssued)

    opened = [m["params"] for m in heard(tmp_path) if m["method"] == method]
    text = "Not connected: the MCP servers a. Codex refuses them: no such setting"
    assert noticed == NoticeIssued(text)
    assert ["config" in str(each) for each in opened] == [True, False]


@asynccontextmanager
async def playing(
    tmp_path: Path,
    *acts: Mapping[str, object],
    on: Mapping[str, object] = MappingProxyType({}),
    servers: Sequence[McpServerConfig] = (),
) -> AsyncGenerator[CodexRunner]:
    """A Codex whose turns go as these acts say, after their beginning."""
    played = {"on": {"turn/start": [[{"begin": None}, *acts]], **on}}
    command = shlex.join(fake_app_server.command(played, tmp_path))
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\nexec {command}\n")
    program.chmod(0o700)
    async with stage_in(tmp_path, tmp_path) as stage:
        yield CodexRunner(stage, str(program), servers=servers)


@asynccontextmanager
async def conversing(
    tmp_path: Path, *acts: Mapping[str, object]
) -> AsyncGenerator[CodexConversation]:
    """A conversation with it."""
    async with (
        playing(tmp_path, *acts) as runner,
        runner.converse(None, RunnerJournal()) as conversation,
    ):
        yield conversation


async def told(conversation: CodexConversation, kind: type[object]) -> AnyEvent:
    """Have a turn begun, and leave it as soon as it tells something of a kind."""
    async with aclosing(conversation.take_turn("x")) as turn:
        async for batch in turn:
            for each in batch:
                if isinstance(each, kind):
                    return each
    raise AssertionError("it ended")


async def awaited(conversation: CodexConversation, what: str, *, count: int) -> list[float]:
    """Have a turn begun, and leave it when it was waited for this so often; for how long each."""
    waits: list[float] = []
    with anyio.fail_after(60):
        async with aclosing(conversation.take_turn("x")) as turn:
            async for batch in turn:
                waits += [
                    e.seconds for e in batch if isinstance(e, WaitingReported) and e.what == what
                ]
                if len(waits) >= count:
                    return waits
    raise AssertionError("it ended")


def heard(tmp_path: Path) -> list[Mapping[str, object]]:
    return [m for m in fake_app_server.received(tmp_path) if "method" in m]
