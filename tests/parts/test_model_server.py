"""The scripted model as the real Codex sees it: every reply, and every way to fail."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest

from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.conversation import Conversation, Json, conversation
from tests.parts.model_acts import (
    Act,
    Call,
    Eof,
    Fail,
    Garbage,
    Gate,
    Hang,
    Headers,
    Incomplete,
    Pause,
    Refuse,
    Reply,
    Reset,
    Say,
    Think,
    add_file,
    run,
)
from tests.parts.model_server import ModelRequest, ModelServer

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def codex(
    model: ModelServer, place: Path, *, stream_retries: int = 0, idle_ms: int = 10_000
) -> AsyncIterator[tuple[Conversation, str]]:
    """The real Codex on a scripted model, with a thread begun."""
    env = codex_home(place, model.url, stream_retries=stream_retries, idle_ms=idle_ms)
    async with conversation([codex_binary(), "app-server"], env=env) as talk:
        await talk.introduce()
        started = await talk.request("thread/start", {"cwd": str(place)})
        yield talk, started["thread"]["id"]


def items(talk: Conversation) -> list[tuple[str, str]]:
    done = [m["params"]["item"] for _, m in talk.said if m.get("method") == "item/completed"]
    return [(item["type"], item.get("status", item.get("text", ""))) for item in done]


async def test_a_turn_of_every_sort_of_reply(tmp_path: Path) -> None:
    script: list[Reply] = [
        [Think("Hm."), run("exit 3", call_id="a"), run("echo hi", call_id="b"), add_file("f", "x")],
        [Garbage(), Pause(0.01), Say("All done.", deltas=3)],
    ]
    async with ModelServer(script) as model, codex(model, tmp_path) as (talk, thread):
        turn = await talk.turn(thread, "go")

    assert turn["status"] == "completed"
    assert sorted(items(talk)) == [
        ("agentMessage", "All done."),
        ("commandExecution", "completed"),
        ("commandExecution", "failed"),
        ("fileChange", "completed"),
        ("reasoning", ""),
        ("userMessage", ""),
    ]
    assert (tmp_path / "f").read_text() == "x\n"
    assert "go" in model.requests[0].texts
    outputs = model.requests[1].tool_outputs
    assert sorted(outputs) == ["a", "b", "call_patch"]
    assert "hi" in str(outputs["b"])


async def test_a_function_may_choose_the_reply(tmp_path: Path) -> None:
    def choose(request: ModelRequest) -> Reply:
        return [Say("two" if "second" in request.texts else "one")]

    async with ModelServer(choose) as model, codex(model, tmp_path) as (talk, thread):
        await talk.turn(thread, "first")
        await talk.turn(thread, "second")

    assert [text for kind, text in items(talk) if kind == "agentMessage"] == ["one", "two"]


@pytest.mark.parametrize(
    ("acts", "info"),
    [
        ([Refuse(429, "rate_limit_exceeded")], {"responseTooManyFailedAttempts": 429}),
        ([Refuse(429, "usage_limit_reached")], "usageLimitExceeded"),
        ([Refuse(500)], "internalServerError"),
        ([Refuse(503, "server_is_overloaded")], "serverOverloaded"),
        ([Refuse(404, "model_not_found")], "modelNotFound"),
        ([Refuse(400)], "other"),
        ([Refuse(401)], {"httpConnectionFailed": 401}),
        ([Say("half", finished=False), Reset()], "other"),
        ([Say("half", finished=False), Eof()], "other"),
        ([Headers(), Hang()], "other"),
        ([Say("half", finished=False), Hang()], "other"),
        ([Fail("server_error")], "other"),
        ([Fail("context_length_exceeded")], "contextWindowExceeded"),
        ([Fail("insufficient_quota")], "usageLimitExceeded"),
        ([Incomplete()], "other"),
    ],
    ids=str,
)
async def test_a_failure_of_the_model(tmp_path: Path, acts: list[Act], info: Json | str) -> None:
    async with ModelServer([acts]) as model, codex(model, tmp_path, idle_ms=300) as (talk, thread):
        turn = await talk.turn(thread, "go")

    said = turn["error"]["codexErrorInfo"]
    if isinstance(said, dict):
        said = {name: details["httpStatusCode"] for name, details in said.items()}
    assert (turn["status"], said) == ("failed", info)


async def posted(model: ModelServer) -> bytes:
    """What a bare client reads, up to the end of the connection."""
    port = int(model.url.split(":")[2].split("/")[0])
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"POST /v1/responses HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
        said = b""
        with suppress(anyio.EndOfStream):
            while True:
                said += await stream.receive()
        return said


async def test_a_reset_is_not_an_end_in_good_order() -> None:
    half = Say("half", finished=False)
    async with ModelServer([[half, Eof()], [half, Reset()]]) as model:
        assert b'"delta": "half"' in await posted(model)
        with pytest.raises(anyio.BrokenResourceError) as raised:
            await posted(model)

    assert isinstance(raised.value.__cause__, ConnectionResetError)


async def test_a_wait_that_the_model_asks_for_is_a_retry(tmp_path: Path) -> None:
    script: list[Reply] = [[Refuse(429, "rate_limit_exceeded", retry_after=1)], [Say("Now.")]]
    async with (
        ModelServer(script) as model,
        codex(model, tmp_path, stream_retries=1) as (talk, thread),
    ):
        turn = await talk.turn(thread, "go")

    retries = [m["params"]["willRetry"] for _, m in talk.said if m.get("method") == "error"]
    assert (turn["status"], retries) == ("completed", [True])


async def test_a_gate_holds_the_stream_until_it_is_opened(tmp_path: Path) -> None:
    gate = anyio.Event()
    script: list[Reply] = [[Say("before"), Gate(gate), Say("after")]]
    async with ModelServer(script) as model, codex(model, tmp_path) as (talk, thread):
        text = [{"type": "text", "text": "go", "text_elements": []}]
        await talk.request("turn/start", {"threadId": thread, "input": text})
        await model.requested(1)
        while ("agentMessage", "before") not in items(talk):
            await talk.receive()
        assert ("agentMessage", "after") not in items(talk)
        gate.set()
        await talk.until("turn/completed")

    assert ("agentMessage", "after") in items(talk)


async def test_a_silent_model_is_left_by_the_end_of_the_block(tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with ModelServer([[Hang()]]) as model, codex(model, tmp_path) as (talk, thread):
            text = [{"type": "text", "text": "go", "text_elements": []}]
            await talk.request("turn/start", {"threadId": thread, "input": text})
            await model.requested(1)


async def test_a_request_that_is_not_in_the_script_is_not_overlooked(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="1 requests were not in the script"):
        async with ModelServer([]) as model, codex(model, tmp_path) as (talk, thread):
            await talk.turn(thread, "go")


async def test_a_tool_that_does_not_exist_is_told_to_the_model(tmp_path: Path) -> None:
    script: list[Reply] = [[Call("shell", {"command": ["ls"]})], [Say("Then not.")]]
    async with ModelServer(script) as model, codex(model, tmp_path) as (talk, thread):
        await talk.turn(thread, "go")

    assert model.requests[1].tool_outputs == {"call_1": "unsupported call: shell"}
