"""The model fails the real Codex: the turn ends by name, and the thread goes on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.codex.failures import (
    CodexContextExhausted,
    ModelAuth,
    ModelLimited,
    ModelMissing,
    ModelQuotaSpent,
    ModelUnavailable,
    TurnFailed,
)
from holdfast.codex.turns import failure_of
from holdfast.codex.wire.generated import ErrorNotification, TurnCompletedNotification
from holdfast.failures import Failure
from tests.journeys.stage import Stage, staged
from tests.parts.codex_binary import codex_home
from tests.parts.model_acts import Eof, Fail, Hang, Headers, Incomplete, Refuse, Reply, Reset, Say
from tests.parts.model_server import ModelServer

pytestmark = pytest.mark.anyio

HALF = Say("half", finished=False)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn ended: of what, with which status behind it, after how many retries told."""

    failure: type[Failure]
    http_status: int | None = None
    retries: int = 0
    is_retryable: bool = True


@pytest.mark.parametrize(
    ("reply", "tries", "ended"),
    [
        ([Refuse(429, "rate_limit_exceeded", retry_after=1)], 2, Ended(ModelLimited, 429, 1)),
        ([Refuse(429, "rate_limit_exceeded")], 1, Ended(ModelLimited, 429)),
        ([Refuse(429, "usage_limit_reached")], 1, Ended(ModelQuotaSpent, is_retryable=False)),
        ([Refuse(500)], 2, Ended(ModelUnavailable, retries=1)),
        ([Refuse(503, "server_is_overloaded")], 1, Ended(ModelUnavailable)),
        ([Refuse(401)], 2, Ended(ModelAuth, 401, 1, is_retryable=False)),
        ([Refuse(404, "model_not_found")], 1, Ended(ModelMissing, is_retryable=False)),
        ([Refuse(400)], 1, Ended(TurnFailed)),
        ([HALF, Reset()], 2, Ended(TurnFailed, retries=1)),
        ([HALF, Eof()], 2, Ended(TurnFailed, retries=1)),
        ([Headers(), Hang()], 2, Ended(TurnFailed, retries=1)),
        ([HALF, Hang()], 2, Ended(TurnFailed, retries=1)),
        ([Fail("server_error")], 2, Ended(TurnFailed, retries=1)),
        ([Fail("context_length_exceeded")], 1, Ended(CodexContextExhausted, is_retryable=False)),
        ([Fail("insufficient_quota")], 1, Ended(ModelQuotaSpent, is_retryable=False)),
        ([Incomplete()], 1, Ended(TurnFailed)),
    ],
    ids=lambda value: "" if isinstance(value, int) else str(value)[:60],
)
async def test_a_turn_fails_by_name_and_the_thread_goes_on(
    reply: Reply, tries: int, ended: Ended, tmp_path: Path
) -> None:
    # Before it goes on after a full context, Codex asks for a summary.
    script = [*[reply] * tries, [Say("Here I am.")], [Say("Here I am.")]]
    async with (
        staged(tmp_path, script, stream_retries=1, idle_ms=300) as stage,
        stage.connect() as server,
    ):
        thread = await server.start_thread(cwd=tmp_path)
        events = [event async for event in thread.run("go")]
        assert len(stage.model.requests) == tries
        after = await thread.ask("again")

    errors = [event for event in events if isinstance(event, ErrorNotification)]
    last = events[-1]
    assert isinstance(last, TurnCompletedNotification)
    assert (last.turn.status, [error.will_retry for error in errors]) == (
        "failed",
        [*[True] * ended.retries, False],
    )
    assert last.turn.error is not None
    assert of(failure_of(last.turn.error), ended.retries) == ended
    assert (after.status, after.text) == ("completed", "Here I am.")


async def test_what_failed_the_turn_is_in_its_answer(tmp_path: Path) -> None:
    async with staged(tmp_path, [[Refuse(401)]]) as stage, stage.connect() as server:
        answer = await (await server.start_thread(cwd=tmp_path)).ask("go")

    assert answer.status == "failed"
    assert isinstance(answer.error, ModelAuth)
    assert answer.error.phase == "codex.turn"
    assert "401" in answer.error.reason


async def test_a_retry_that_helps_is_told_and_the_turn_completes(tmp_path: Path) -> None:
    script: list[Reply] = [[HALF, Reset()], [Say("Second try.")]]
    async with staged(tmp_path, script, stream_retries=1) as stage, stage.connect() as server:
        thread = await server.start_thread(cwd=tmp_path)
        events = [event async for event in thread.run("go")]

    assert [event.will_retry for event in events if isinstance(event, ErrorNotification)] == [True]
    last = events[-1]
    assert isinstance(last, TurnCompletedNotification)
    assert (last.turn.status, last.turn.error) == ("completed", None)


async def test_a_model_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    nowhere = codex_home(tmp_path, "http://127.0.0.1:1/v1")
    async with Stage(tmp_path, ModelServer([]), nowhere).connect() as server:
        answer = await (await server.start_thread(cwd=tmp_path)).ask("go")

    assert answer.error is not None
    assert of(answer.error) == Ended(ModelUnavailable)


def of(failure: Failure, retries: int = 0) -> Ended:
    http_status: object = getattr(failure, "http_status", None)
    assert http_status is None or isinstance(http_status, int)
    return Ended(type(failure), http_status, retries, failure.retryable)
