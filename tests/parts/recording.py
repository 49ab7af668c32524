"""Let the real Codex say all that matters, against a scripted model, and keep what was said.

python -m tests.parts.recording             writes tests/codex/wire/recorded.jsonl anew
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import anyio

from tests.parts.codex_binary import codex_home, install
from tests.parts.conversation import Conversation, Json, conversation
from tests.parts.model_acts import Gate, Refuse, Reply, Reset, Say, Think, add_file, run
from tests.parts.model_server import ModelServer

RECORDED = Path(__file__).parent.parent / "codex" / "wire" / "recorded.jsonl"
Said = list[tuple[str, Json]]


def recorded() -> Said:
    """All that was said when it was recorded last."""
    messages = [json.loads(line) for line in RECORDED.read_bytes().splitlines()]
    return [(message.pop("from"), message) for message in messages]


def lacking(value: Json) -> Iterator[tuple[str, Json]]:
    """The same JSON without one member, each in turn, at any depth; tags of unions stay."""
    for key, inner in value.items():
        if key != "type":
            yield key, {each: value[each] for each in value if each != key}
        for way, less in _lacking_inside(inner):
            yield f"{key}.{way}", {**value, key: less}


def _lacking_inside(value: Any) -> Iterator[tuple[str, Any]]:  # Any: JSON
    match value:
        case {}:
            yield from lacking(value)
        case [*items]:
            for index, item in enumerate(items):
                for way, less in _lacking_inside(item):
                    yield way, [*items[:index], less, *items[index + 1 :]]
        case _:
            pass


async def record(binary: Path, directory: Path) -> Said:
    """Hold every conversation, and return all that was said in them."""
    said: Said = []
    for hold in (_items, _approvals, _failures, _interrupt):
        place = directory / hold.__name__.strip("_")
        place.mkdir()
        said += await hold(binary, place)
    return said


async def _items(binary: Path, place: Path) -> Said:
    """A turn of every sort of item, then all the questions one may ask about it."""
    script: list[Reply] = [
        [
            Think("Plan it."),
            Say("I shall look.", deltas=3),
            run("for n in 1 2 3; do echo $n; sleep 0.4; done; exit 3"),
        ],
        [add_file("hello.txt", "hello\nworld")],
        [Say("Done.", deltas=2)],
        [Say("Again.")],
    ]
    async with ModelServer(script) as model:
        env = codex_home(place, model.url)
        async with conversation([binary, "app-server"], env=env) as talk:
            await talk.introduce()
            started = await talk.request("thread/start", {"cwd": str(place)})
            thread = started["thread"]["id"]
            await talk.turn(thread, "go")
            await _ask_everything(talk, thread, place)
            forked = await talk.request("thread/fork", {"threadId": thread})
            await talk.turn(forked["thread"]["id"], "again")
            await talk.request("thread/archive", {"threadId": thread})
        async with conversation([binary, "app-server"], env=env) as again:
            await again.introduce()
            await again.request("thread/resume", {"threadId": forked["thread"]["id"]})
            return talk.said + again.said


async def _ask_everything(talk: Conversation, thread: str, place: Path) -> None:
    named = {"threadId": thread}
    await talk.request("thread/name/set", {**named, "name": "a name"})
    await talk.request("thread/read", named)
    await talk.request("thread/list", {"limit": 1})
    await talk.request("thread/loaded/list")
    await talk.request("thread/turns/list", {**named, "itemsView": "full"})
    await talk.request("thread/items/list", named)
    await talk.request("model/list", {"limit": 1})
    await talk.request("config/read", {"includeLayers": False})
    await talk.request("command/exec", {"command": ["echo", "hi"], "timeoutMs": 5000})
    await talk.request("fs/readFile", {"path": str(place / "hello.txt")})


async def _approvals(binary: Path, place: Path) -> Said:
    """A command that is allowed and a patch that is not."""
    outside = place.parent / "outside.txt"
    script: list[Reply] = [[run("touch made.txt"), add_file(str(outside), "x")], [Say("Well.")]]

    def answers(method: str, params: Json) -> Json:
        is_command = method == "item/commandExecution/requestApproval"
        return {"decision": "accept" if is_command else "decline"}

    async with ModelServer(script) as model:
        env = codex_home(place, model.url)
        async with conversation([binary, "app-server"], env=env, answers=answers) as talk:
            await talk.introduce()
            asked = {"cwd": str(place), "approvalPolicy": "untrusted"}
            started = await talk.request("thread/start", asked)
            await talk.turn(started["thread"]["id"], "go")
            return talk.said


async def _failures(binary: Path, place: Path) -> Said:
    """A model that fails, then one that breaks off and is asked again."""
    script: list[Reply] = [
        [Refuse(429, "rate_limit_exceeded", "slow down")],
        [Say("half", finished=False), Reset()],
        [Say("whole")],
    ]
    async with ModelServer(script) as model:
        env = codex_home(place, model.url, stream_retries=1)
        async with conversation([binary, "app-server"], env=env) as talk:
            await talk.introduce()
            started = await talk.request("thread/start", {"cwd": str(place)})
            thread = started["thread"]["id"]
            await talk.turn(thread, "fail")
            await talk.turn(thread, "and go on")
            return talk.said


async def _interrupt(binary: Path, place: Path) -> Said:
    """A turn that is interrupted while the model is silent."""
    never = anyio.Event()
    async with ModelServer([[Say("half", finished=False), Gate(never)]]) as model:
        env = codex_home(place, model.url)
        async with conversation([binary, "app-server"], env=env) as talk:
            await talk.introduce()
            started = await talk.request("thread/start", {"cwd": str(place)})
            thread = started["thread"]["id"]
            content: list[Json] = [{"type": "text", "text": "go", "text_elements": []}]
            turn = await talk.request("turn/start", {"threadId": thread, "input": content})
            await talk.until("item/agentMessage/delta")
            named = {"threadId": thread, "turnId": turn["turn"]["id"]}
            await talk.request("turn/interrupt", named)
            await talk.until("turn/completed")
            await talk.request("thread/backgroundTerminals/clean", {"threadId": thread})
            return talk.said


def written(said: Said, directory: Path) -> Iterable[str]:
    """Write what was said as lines that tell nothing about this machine."""
    for speaker, message in said:
        line = json.dumps({"from": speaker, **message}, ensure_ascii=False)
        line = line.replace(str(directory), "/home/someone")
        line = re.sub(r'"serverName": "[^"]*"', '"serverName": "somewhere"', line)
        yield re.sub(r"holdfast_tests/[^\"]*", "holdfast_tests/0.166.0 (Linux)", line) + "\n"


def main() -> None:
    """Record anew."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        said = anyio.run(record, install(), Path(directory))
        RECORDED.write_text("".join(written(said, Path(directory))))


if __name__ == "__main__":
    main()
