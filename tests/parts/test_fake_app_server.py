"""The fake app-server speaks like the real one, and misbehaves exactly as told."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from holdfast.codex.wire.generated import NOTIFICATIONS, RESULTS, SERVER_REQUESTS
from tests.parts.conversation import (
    Answers,
    Conversation,
    Ended,
    Json,
    Refused,
    conversation,
    decline,
)
from tests.parts.fake_app_server import WRONG_SCENARIO, command, received

pytestmark = pytest.mark.anyio

INPUT = [{"type": "text", "text": "hi", "text_elements": []}]
START: Json = {"threadId": "thread-1", "input": INPUT}
BEGIN, DONE = {"begin": None}, {"end": "completed"}


def played(
    directory: Path, answers: Answers = decline, **scenario: Any
) -> Any:  # Any: JSON; a context
    return conversation(command(scenario, directory), answers=answers, patience=10.0)


def news(talk: Conversation) -> list[str]:
    return [m["method"] for who, m in talk.said if who == "server" and "method" in m]


async def test_all_that_a_good_server_says_fits_the_types(tmp_path: Path) -> None:
    acts = [BEGIN, {"say": "Hello", "deltas": 2}, {"run": "ls"}, {"approve": "command"}]
    acts += [{"approve": "fileChange"}, {"error": "again", "willRetry": True}, DONE]
    async with played(tmp_path, on={"turn/start": [acts]}) as talk:
        await talk.introduce()
        started = await talk.request("thread/start", {"approvalPolicy": "never"})
        turn = await talk.turn(started["thread"]["id"], "hi")
        await talk.request("thread/resume", {"threadId": "thread-1"})
        await talk.request("thread/list", {"limit": 1})

    assert turn["status"] == "completed"
    asked = {m["id"]: m["method"] for who, m in talk.said if who == "client" and "params" in m}
    for who, message in talk.said:
        if who == "server" and "method" in message:
            table = SERVER_REQUESTS if "id" in message else NOTIFICATIONS
            msgspec.convert(message["params"], table[message["method"]])
        elif who == "server":
            msgspec.convert(message["result"], RESULTS[asked[message["id"]]])


@pytest.mark.parametrize(
    ("decision", "item", "turn"),
    [
        ("accept", "completed", "completed"),
        ("decline", "declined", "completed"),
        ("cancel", "declined", "interrupted"),
    ],
)
async def test_a_decision_is_heeded(tmp_path: Path, decision: str, item: str, turn: str) -> None:
    acts = [BEGIN, {"approve": "command"}, DONE]

    def answers(method: str, params: Json) -> Json:
        return {"decision": decision}

    async with played(tmp_path, answers, on={"turn/start": [acts]}) as talk:
        ended = await talk.turn("thread-1", "hi")

    items = [m["params"]["item"] for _, m in talk.said if m.get("method") == "item/completed"]
    assert (items[-1]["status"], ended["status"]) == (item, turn)
    assert received(tmp_path)[-1] == {"id": 0, "result": {"decision": decision}}


async def test_a_turn_can_be_interrupted(tmp_path: Path) -> None:
    acts = [BEGIN, {"say": "half", "finished": False}, {"sleep": 100}]
    async with played(tmp_path, on={"turn/start": [acts]}) as talk:
        await talk.request("turn/start", START)
        await talk.request("turn/interrupt", {"threadId": "thread-1", "turnId": "turn-1"})
        ended = await talk.until("turn/completed")

        with pytest.raises(Refused, match="no active turn"):
            await talk.request("turn/interrupt", {"threadId": "thread-1", "turnId": "turn-1"})

    assert ended["turn"]["status"] == "interrupted"


async def test_reactions_are_met_in_turn_and_the_last_repeats(tmp_path: Path) -> None:
    overload = [{"refuse": -32001, "message": "Server overloaded; retry later."}]
    async with played(tmp_path, on={"thread/list": [overload, None]}) as talk:
        with pytest.raises(Refused, match="-32001"):
            await talk.request("thread/list")
        answers = [await talk.request("thread/list") for _ in range(2)]

    assert answers == [{"data": [], "nextCursor": None}] * 2


async def test_a_method_that_nobody_knows_is_refused_as_the_real_one_refuses_it(
    tmp_path: Path,
) -> None:
    async with played(tmp_path) as talk:
        with pytest.raises(Refused, match=r"-32600.*unknown variant"):
            await talk.request("no/such")


async def test_answers_can_come_out_of_order_and_behind_news(tmp_path: Path) -> None:
    release = [
        {"notify": "warning", "params": {"message": "w"}},
        {"standard": None},
        {"release": None},
    ]
    async with played(
        tmp_path, on={"thread/list": [[{"hold": None}]], "thread/loaded/list": [release]}
    ) as talk:
        for number, method in [(1, "thread/list"), (2, "thread/list"), (3, "thread/loaded/list")]:
            await talk.send({"id": number, "method": method, "params": {}})
        # A held request meets its script again on release only as a good server would meet it.
        said = [await talk.receive() for _ in range(4)]

    assert [m.get("id", m.get("method")) for m in said] == ["warning", 3, 2, 1]


@pytest.mark.parametrize(
    ("acts", "lines"),
    [
        ([{"raw": "{not json", "times": 3}], [b"{not json"] * 3),
        ([{"answer": {}, "id": None}], [b'{"result": {}}']),
        ([{"answer": {}, "id": 999}], [b'{"id": 999, "result": {}}']),
        ([{"answer": {"me": "$id"}}], [b'{"id": 7, "result": {"me": 7}}']),
        ([{"raw": "\udcff\udcfe"}], [b"\xff\xfe"]),
        ([{"partial": '{"half":'}, {"exit": 0}], [b'{"half":']),
    ],
)
async def test_odd_lines_are_written_as_told(
    tmp_path: Path, acts: list[Json], lines: list[bytes]
) -> None:
    words = command({"on": {"odd": [acts]}}, tmp_path)

    done = await anyio.run_process(words, input=b'{"id": 7, "method": "odd"}\n')

    assert done.stdout.split(b"\n")[: len(lines)] == lines


async def test_a_giant_line_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    words = command({"start": [{"giant": 3_000_000}, {"exit": 0}]}, tmp_path)

    done = await anyio.run_process(words)

    assert len(done.stdout) == 3_000_001
    assert json.loads(done.stdout)["method"] == "giant"


async def test_a_flood_is_as_long_as_told(tmp_path: Path) -> None:
    async with played(tmp_path, on={"turn/start": [[BEGIN, {"flood": 1001}, DONE]]}) as talk:
        await talk.turn("thread-1", "hi")

    assert news(talk).count("item/agentMessage/delta") == 1001


@pytest.mark.parametrize(
    ("acts", "status"),
    [
        ([{"exit": 3}], 3),
        ([{"exit": 0}], 0),
        ([{"kill": None}], -signal.SIGKILL),
        ([{"no such verb": 1}], WRONG_SCENARIO),
    ],
)
async def test_a_turn_can_end_with_the_process(
    tmp_path: Path, acts: list[Json], status: int
) -> None:
    scenario = [BEGIN, {"say": "half", "finished": False}, *acts]
    async with played(tmp_path, on={"turn/start": [scenario]}) as talk:
        with pytest.raises(Ended, match=f"status {status}$"):
            await talk.turn("thread-1", "hi")

    assert news(talk)[-1] == "item/agentMessage/delta"


async def test_a_start_can_fail_and_say_why(tmp_path: Path) -> None:
    words = command({"start": [{"stderr": "no config", "times": 2}, {"exit": 1}]}, tmp_path)

    done = await anyio.run_process(words, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"no config\n" * 2)


async def test_an_approval_can_be_followed_by_death(tmp_path: Path) -> None:
    approval = "item/commandExecution/requestApproval"
    acts = [BEGIN, {"ask": approval, "params": {"threadId": "$thread"}}]
    scenario = {"turn/start": [acts], "die": [[{"kill": None}]]}
    async with played(tmp_path, lambda method, params: None, on=scenario) as talk:
        await talk.request("turn/start", START)
        assert await talk.until(approval) == {"threadId": "thread-1"}
        await talk.send({"method": "die"})
        with pytest.raises(Ended, match=r"status -9$"):
            await talk.receive()


async def test_it_waits_for_a_message_when_told(tmp_path: Path) -> None:
    late = [{"until": "thread/loaded/list"}, {"answer": "late"}]
    async with played(tmp_path, on={"thread/list": [late]}) as talk:
        await talk.send({"id": 50, "method": "thread/list", "params": {}})
        await talk.request("thread/loaded/list")
        while (message := await talk.receive()).get("id") != 50:
            pass

    assert message == {"id": 50, "result": "late"}


async def test_it_can_refuse_to_go(tmp_path: Path) -> None:
    words = command({"ignore": ["EOF", "SIGTERM"], "start": [{"raw": "ready"}]}, tmp_path)
    async with await anyio.open_process(words, stderr=subprocess.DEVNULL) as process:
        assert process.stdin is not None and process.stdout is not None
        assert await process.stdout.receive() == b"ready\n"
        await process.stdin.aclose()
        process.terminate()
        with anyio.move_on_after(0.3) as waited:
            await process.wait()
        process.kill()

    assert waited.cancelled_caught


async def test_it_can_close_its_mouth_and_live(tmp_path: Path) -> None:
    async with played(tmp_path, start=[{"close": None}]) as talk:
        assert talk.process.stdout is not None
        with pytest.raises(anyio.EndOfStream):
            await talk.process.stdout.receive()

        assert talk.process.returncode is None


async def test_it_can_stop_listening(tmp_path: Path) -> None:
    async with played(tmp_path, on={"thread/list": [[{"standard": None}, {"deaf": None}]]}) as talk:
        await talk.request("thread/list")
        talk.patience = 0.3
        with pytest.raises(TimeoutError):
            await talk.request("thread/loaded/list")

    assert [m["method"] for m in received(tmp_path)] == ["thread/list"]
