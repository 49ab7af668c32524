"""Codex that cannot be used says why, and is asked about what it does in our words."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.codex import following
from holdfast.runners.codex import CodexConversation, CodexRunner
from holdfast.runners.failures import RunnerUnavailable
from holdfast.runners.model import AnyEvent, Asked, Ending, Said, TurnEnded
from holdfast.runners.testing import Notebook
from tests.contracts.test_runners import stage_in
from tests.parts import fake_app_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("program", ["/nowhere/codex", "/bin/false", "/bin/cat"])
async def test_what_is_no_codex_is_unavailable(tmp_path: Path, program: str) -> None:
    async with stage_in(tmp_path, tmp_path) as stage:
        runner = CodexRunner(stage, program)
        health = await runner.health()
        with pytest.raises(RunnerUnavailable) as caught:
            async with runner.converse(None, Notebook()):
                pass

    assert (health.is_healthy, bool(health.reason)) == (False, True)
    assert "npm install" in caught.value.user_message


async def test_a_turn_is_left_although_all_that_belongs_to_it_is_cancelled(tmp_path: Path) -> None:
    acts = {"say": "a"}, {"until": "nothing"}
    async with playing(tmp_path, *acts) as runner:
        with anyio.CancelScope() as scope:
            async with (
                runner.converse(None, Notebook()) as talk,
                aclosing(talk.take_turn("x")) as turn,
            ):
                async for batch in turn:
                    if any(isinstance(each, Said) for each in batch):
                        scope.cancel()

    assert scope.cancelled_caught


async def test_a_turn_that_has_hardly_begun_is_ended_by_who_leaves_it(tmp_path: Path) -> None:
    async with conversing(tmp_path, {"until": "nothing"}) as talk:
        await told(talk, object)

    assert [m["method"] for m in heard(tmp_path)][-1] == "turn/interrupt"


async def test_what_was_asked_in_a_turn_is_asked_no_more_after_it(tmp_path: Path) -> None:
    async with conversing(tmp_path, {"approve": "command"}) as talk:
        asked = await told(talk, Asked)
        assert isinstance(asked, Asked)

        assert not await talk.answer(asked.question, "yes")


async def test_a_turn_that_can_be_followed_no_more_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ITEMS_MAX", 0)
    async with conversing(tmp_path, {"until": "nothing"}) as talk:
        ended = await told(talk, TurnEnded)

    assert isinstance(ended, TurnEnded)
    assert ended.ending is Ending.FAILED
    assert "turn/interrupt" in [m["method"] for m in heard(tmp_path)]


@asynccontextmanager
async def playing(tmp_path: Path, *acts: Mapping[str, object]) -> AsyncGenerator[CodexRunner]:
    """A Codex whose turns go as these acts say, after their beginning."""
    played = {"on": {"turn/start": [[{"begin": None}, *acts]]}}
    command = shlex.join(fake_app_server.command(played, tmp_path))
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\nexec {command}\n")
    program.chmod(0o700)
    async with stage_in(tmp_path, tmp_path) as stage:
        yield CodexRunner(stage, str(program))


@asynccontextmanager
async def conversing(
    tmp_path: Path, *acts: Mapping[str, object]
) -> AsyncGenerator[CodexConversation]:
    """A conversation with it."""
    async with playing(tmp_path, *acts) as runner, runner.converse(None, Notebook()) as talk:
        yield talk


async def told(talk: CodexConversation, kind: type[object]) -> AnyEvent:
    """Have a turn begun, and leave it as soon as it tells something of a kind."""
    async with aclosing(talk.take_turn("x")) as turn:
        async for batch in turn:
            for each in batch:
                if isinstance(each, kind):
                    return each
    raise AssertionError("it ended")


def heard(tmp_path: Path) -> list[Mapping[str, object]]:
    return [m for m in fake_app_server.received(tmp_path) if "method" in m]
