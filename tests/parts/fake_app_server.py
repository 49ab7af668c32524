"""A Codex app-server that does what it is told: speak well enough, and misbehave on command.

    python fake_app_server.py scenario.json

    {"start": [ACT, …],                      before anything is read
     "on": {"turn/start": [REACTION, …]},    how each request is met
     "ignore": ["EOF", "SIGTERM"]}           what does not end it

The first request of a method meets the first reaction, and so on; the last reaction repeats. A
reaction is a list of acts, or null for what a good server does. Reactions to different requests
run side by side. An act is an object whose first key is its verb:

    {"answer": RESULT}                  answers the request; "id": another id, or null for none
    {"refuse": CODE, "message": TEXT}   answers it with an error
    {"notify": METHOD, "params": …}     news
    {"ask": METHOD, "params": …}        a request of the server's; waits for its answer
    {"begin": null}                     answers turn/start; turn, status and user message begin
    {"say": TEXT, "deltas": 3}          a message; "finished": false leaves it half
    {"run": COMMAND}                    a command item that succeeds
    {"approve": "command" | "fileChange"}   an item that asks first, and heeds the decision
    {"error": TEXT, "info": …, "willRetry": true}
    {"end": STATUS}                     the turn ends: completed, interrupted or failed ("info": …)
    {"flood": N}                        N deltas, as fast as they can be written
    {"raw": TEXT, "times": 1}           lines as they are, malformed or not
    {"partial": TEXT}                   a line without its end
    {"giant": BYTES}                    one notification, in a line of so many bytes
    {"stderr": TEXT, "times": 1}
    {"sleep": SECONDS}
    {"until": METHOD}                   waits until such a request, or notification, has come
    {"hold": null}                      keeps the request unanswered until a release …
    {"release": null}                   … which answers all that are held, the newest first
    {"standard": null}                  what a good server does, at this place
    {"deaf": null}                      never reads again
    {"close": null}                     closes stdout and lives on
    {"exit": STATUS}                    ends the process
    {"kill": null}                      … as if by kill -9

"$thread", "$turn", "$id" and "$decision" in what is sent stand for what they say. All that the
server was sent is in `scenario.json.received`. It needs nothing but Python, and never outlives a
test run.
"""

# pyright: basic
# The wire is JSON, nearly all of it Any: strict rules about unknown types say nothing here.

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Json = Any  # Any: this is a wire
LIFE_LONGEST = 110
WRONG_SCENARIO = 70
BLOCK = 200  # deltas that are written at once

STANDARD: dict[str, list[dict[str, Json]]] = {
    "initialize": [
        {
            "answer": {
                "userAgent": "fake/0.166.0",
                "codexHome": "/nowhere",
                "platformFamily": "unix",
                "platformOs": "linux",
            }
        }
    ],
    "initialized": [],
    "thread/list": [{"answer": {"data": [], "nextCursor": None}}],
    "thread/loaded/list": [{"answer": {"data": []}}],
    "thread/turns/list": [{"answer": {"data": [], "nextCursor": None}}],
    "thread/backgroundTerminals/list": [{"answer": {"data": [], "nextCursor": None}}],
    "thread/backgroundTerminals/terminate": [{"answer": {"terminated": True}}],
    "thread/unsubscribe": [{"answer": {"status": "unsubscribed"}}],
    "thread/archive": [
        {"answer": {}},
        {"notify": "thread/archived", "params": {"threadId": "$thread"}},
    ],
    "turn/start": [
        {"begin": None},
        {"say": "Hello from the fake", "deltas": 3},
        {"end": "completed"},
    ],
}


def command(scenario: Mapping[str, Json], directory: Path) -> list[str]:
    """Write a scenario, and say how to start the server that plays it."""
    path = directory / "scenario.json"
    path.write_text(json.dumps(scenario))
    return [sys.executable, "-I", "-S", __file__, str(path)]


def received(directory: Path) -> list[dict[str, Json]]:
    """All messages that the server in this directory was sent, in order."""
    log = directory / "scenario.json.received"
    return [json.loads(line) for line in log.read_bytes().splitlines()]


class Server:
    """Plays a scenario to one client."""

    def __init__(self, scenario: Mapping[str, Json], log: Path) -> None:
        self.scenario = scenario
        self.log = log.open("wb", buffering=0)
        self.met: Counter[str] = Counter()
        self.came: dict[str, asyncio.Event] = {}
        self.asked: dict[int, asyncio.Future[Json]] = {}
        self.held: list[Reaction] = []
        self.turns: dict[str, Reaction] = {}  # by thread
        self.tasks: set[asyncio.Task[None]] = set()
        self.hearing = asyncio.Event()
        self.hearing.set()
        self.counts: Counter[str] = Counter()

    async def serve(self) -> None:
        """Read until the client ends it, unless that is to be ignored."""
        await Reaction(self, {}).play(self.scenario.get("start", []))
        reader = asyncio.StreamReader(limit=2**28)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self.log.write(line)
            self.take(json.loads(line))
            await asyncio.sleep(0)  # what was taken may begin, and make us deaf
            await self.hearing.wait()
        if "EOF" in self.scenario.get("ignore", []):
            await asyncio.sleep(LIFE_LONGEST)

    def take(self, message: dict[str, Json]) -> None:
        """Meet a request or a notification, or take the answer to what we asked."""
        method = message.get("method")
        if method is None:
            waiting = self.asked.pop(message["id"], None)
            if waiting is not None:
                waiting.set_result(message)
            return
        reaction = Reaction(self, message)
        task = asyncio.create_task(reaction.play(self.acts(method)))
        reaction.task = task
        self.tasks.add(task)
        task.add_done_callback(self.ended)
        self.event(method).set()

    def ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            write(f"the scenario is wrong: {error!r}\n".encode(), to=2)
            os._exit(WRONG_SCENARIO)

    def acts(self, method: str) -> Sequence[dict[str, Json]]:
        reactions = self.scenario.get("on", {}).get(method, [None])
        acts = reactions[min(self.met[method], len(reactions) - 1)]
        self.met[method] += 1
        return [{"standard": None}] if acts is None else acts

    def event(self, method: str) -> asyncio.Event:
        return self.came.setdefault(method, asyncio.Event())

    def number(self, of: str) -> int:
        self.counts[of] += 1
        return self.counts[of]


class Reaction:
    """Meets one message by playing acts."""

    def __init__(self, server: Server, message: dict[str, Json]) -> None:
        self.server = server
        self.message = message
        self.params = message.get("params") or {}
        self.thread = self.params.get("threadId", "thread-1")
        self.turn = self.params.get("turnId", "turn-1")
        self.decision: Json = None
        self.task: asyncio.Task[None] | None = None

    async def play(self, acts: Sequence[dict[str, Json]]) -> None:
        for act in acts:
            verb, value = next(iter(act.items()))
            done = getattr(self, f"do_{verb}")(value, act)
            if done is not None:
                await done

    def send(self, message: Json) -> None:
        write(json.dumps(self.filled(message)).encode() + b"\n")

    def filled(self, value: Json) -> Json:
        """Put what is known in the place of its name."""
        if isinstance(value, dict):
            return {key: self.filled(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        known = {"$thread": self.thread, "$turn": self.turn, "$decision": self.decision}
        known["$id"] = self.message.get("id")
        return known.get(value, value) if isinstance(value, str) else value

    def note(self, method: str, **params: Json) -> None:
        stamp = int(time.time() * 1000)
        self.send({"method": method, "params": params, "emittedAtMs": stamp})

    # What a good server does, for methods that take more than acts to describe.

    def do_standard(self, _: Json, __: Json) -> Json:
        method = self.message["method"]
        if method in STANDARD:
            return self.play(STANDARD[method])
        special = {
            "thread/start": self.start_thread,
            "thread/resume": self.resume_thread,
            "thread/read": self.resume_thread,
            "turn/interrupt": self.interrupt,
        }
        if method in special:
            return special[method]()
        text = f"Invalid request: unknown variant `{method}`"
        return self.do_refuse(-32600, {"message": text})

    def start_thread(self) -> None:
        self.thread = f"thread-{self.server.number('thread')}"
        self.do_answer(self.described(), {})
        self.note("thread/started", thread=self.described()["thread"])

    def resume_thread(self) -> None:
        self.do_answer(self.described(), {})

    def described(self) -> Json:
        thread = {
            "id": self.thread,
            "sessionId": self.thread,
            "cliVersion": "0.166.0",
            "createdAt": 0,
            "updatedAt": 0,
            "cwd": "/nowhere",
            "ephemeral": False,
            "modelProvider": "fake",
            "preview": "",
            "projectId": None,
            "source": "appServer",
            "status": self.status(),
            "turns": [],
        }
        return {
            "thread": thread,
            "model": "fake",
            "modelProvider": "fake",
            "cwd": "/nowhere",
            "approvalPolicy": self.params.get("approvalPolicy") or "never",
            "approvalsReviewer": "user",
            "sandbox": {"type": "dangerFullAccess"},
        }

    def status(self) -> Json:
        if self.thread in self.server.turns:
            return {"type": "active", "activeFlags": []}
        return {"type": "idle"}

    def interrupt(self) -> None:
        running = self.server.turns.get(self.thread)
        if running is None:
            self.do_refuse(-32600, {"message": "no active turn to interrupt"})
            return
        assert running.task is not None
        running.task.cancel()
        self.do_answer({}, {})
        running.do_end("interrupted", {})

    # Answers, news and questions.

    def do_answer(self, result: Json, act: Json) -> None:
        answer = {"id": act.get("id", self.message.get("id")), "result": result}
        self.send(answer if answer["id"] is not None else {"result": result})

    def do_refuse(self, code: int, act: Json) -> None:
        error = {"code": code, "message": act.get("message", "refused")}
        self.send({"error": error, "id": self.message.get("id")})

    def do_notify(self, method: str, act: Json) -> None:
        self.note(method, **act.get("params", {}))

    async def do_ask(self, method: str, act: Json) -> None:
        number = self.server.number("asked") - 1
        answer = self.server.asked[number] = asyncio.get_running_loop().create_future()
        self.send({"method": method, "id": number, "params": act.get("params", {})})
        said = await answer
        self.decision = (said.get("result") or {}).get("decision", "none")
        self.note("serverRequest/resolved", threadId=self.thread, requestId=number)

    # The parts of a turn.

    def do_begin(self, _: Json, __: Json) -> None:
        self.turn = f"turn-{self.server.number('turn')}"
        self.server.turns[self.thread] = self
        turn = {"id": self.turn, "items": [], "status": "inProgress", "error": None}
        self.do_answer({"turn": turn}, {})
        status = {"type": "active", "activeFlags": []}
        self.note("thread/status/changed", threadId=self.thread, status=status)
        self.note("turn/started", threadId=self.thread, turn=turn)
        self.item({"type": "userMessage", "content": self.params.get("input", [])})

    def do_end(self, status: str, act: Json) -> None:
        self.server.turns.pop(self.thread, None)
        after = {"type": "systemError" if status == "failed" else "idle"}
        self.note("thread/status/changed", threadId=self.thread, status=after)
        error = None
        if status == "failed":
            error = {"message": act.get("message", "it failed"), "codexErrorInfo": act.get("info")}
            self.do_error(error["message"], act)
        turn = {"id": self.turn, "items": [], "status": status, "error": error}
        self.note("turn/completed", threadId=self.thread, turn=turn)

    def do_say(self, text: str, act: Json) -> None:
        number, count = f"msg-{self.server.number('item')}", act.get("deltas", 1)
        where = {"threadId": self.thread, "turnId": self.turn}
        item = {"type": "agentMessage", "id": number, "text": ""}
        self.note("item/started", item=item, startedAtMs=0, **where)
        for n in range(count):
            part = text[len(text) * n // count : len(text) * (n + 1) // count]
            self.note("item/agentMessage/delta", itemId=number, delta=part, **where)
        if act.get("finished", True):
            self.note("item/completed", item={**item, "text": text}, completedAtMs=0, **where)

    def do_run(self, command: str, _: Json) -> None:
        self.item(self.command_item(command, "completed", exitCode=0, aggregatedOutput="ok\n"))

    async def do_approve(self, kind: str, act: Json) -> None:
        item = {"type": "fileChange", "changes": [], "status": "inProgress"}
        if kind == "command":
            item = self.command_item(act.get("command", "touch it"), "inProgress")
        item["id"] = f"item-{self.server.number('item')}"
        where = {"threadId": self.thread, "turnId": self.turn}
        self.note("item/started", item=item, startedAtMs=0, **where)
        params = {**where, "itemId": item["id"], "startedAtMs": 0, "reason": "need it"}
        if kind == "command":
            params["command"] = item["command"]
        method = {"command": "commandExecution"}.get(kind, kind)
        await self.do_ask(f"item/{method}/requestApproval", {"params": params})
        accepted = self.decision in {"accept", "acceptForSession"}
        item["status"] = "completed" if accepted else "declined"
        self.note("item/completed", item=item, completedAtMs=0, **where)
        if self.decision == "cancel":
            self.do_end("interrupted", {})
            raise asyncio.CancelledError

    def command_item(self, command: str, status: str, **more: Json) -> dict[str, Json]:
        item = {"type": "commandExecution", "command": command, "commandActions": []}
        return {**item, "cwd": "/nowhere", "status": status, **more}

    def item(self, item: dict[str, Json]) -> None:
        item = {**item, "id": f"item-{self.server.number('item')}"}
        where = {"threadId": self.thread, "turnId": self.turn}
        self.note("item/started", item=item, startedAtMs=0, **where)
        self.note("item/completed", item=item, completedAtMs=0, **where)

    def do_error(self, text: str, act: Json) -> None:
        error = {"message": text, "codexErrorInfo": act.get("info"), "additionalDetails": None}
        where = {"threadId": self.thread, "turnId": self.turn}
        self.note("error", error=error, willRetry=act.get("willRetry", False), **where)

    async def do_flood(self, count: int, act: Json) -> None:
        where = {"threadId": self.thread, "turnId": self.turn, "itemId": "msg-flood"}
        params = {**where, "delta": act.get("text", "streamed text")}
        note = {"method": "item/agentMessage/delta", "params": params, "emittedAtMs": 0}
        line = json.dumps(note).encode() + b"\n"
        for start in range(0, count, BLOCK):
            write(line * min(BLOCK, count - start))
            await asyncio.sleep(0)

    # Misbehaviour.

    def do_raw(self, text: str, act: Json) -> None:
        write((text.encode("utf-8", "surrogateescape") + b"\n") * act.get("times", 1))

    def do_partial(self, text: str, _: Json) -> None:
        write(text.encode("utf-8", "surrogateescape"))

    def do_giant(self, size: int, _: Json) -> None:
        head, tail = b'{"method":"giant","params":{"text":"', b'"}}'
        write(head + b"x" * (size - len(head) - len(tail)) + tail + b"\n")

    def do_stderr(self, text: str, act: Json) -> None:
        write((text.encode() + b"\n") * act.get("times", 1), to=2)

    async def do_sleep(self, seconds: float, _: Json) -> None:
        await asyncio.sleep(seconds)

    async def do_until(self, method: str, _: Json) -> None:
        await self.server.event(method).wait()

    def do_hold(self, _: Json, __: Json) -> None:
        self.server.held.append(self)

    def do_release(self, _: Json, __: Json) -> Json:
        held, self.server.held = self.server.held, []
        return _all([each.play([{"standard": None}]) for each in reversed(held)])

    def do_deaf(self, _: Json, __: Json) -> None:
        self.server.hearing.clear()

    def do_close(self, _: Json, __: Json) -> None:
        os.close(1)

    def do_exit(self, status: int, _: Json) -> None:
        os._exit(status)

    def do_kill(self, _: Json, __: Json) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


async def _all(plays: list[Json]) -> None:
    for play in plays:
        await play


def write(data: bytes, to: int = 1) -> None:
    """Write everything, waiting for a slow reader as a real server does."""
    view = memoryview(data)
    while view:
        view = view[os.write(to, view) :]


def main() -> None:
    """Play the scenario that the command line names."""
    signal.alarm(LIFE_LONGEST)
    path = Path(sys.argv[1])
    scenario = json.loads(path.read_text())
    ignored = "SIGTERM" in scenario.get("ignore", [])
    signal.signal(signal.SIGTERM, signal.SIG_IGN if ignored else lambda *_: os._exit(0))
    asyncio.run(Server(scenario, path.with_name(f"{path.name}.received")).serve())


if __name__ == "__main__":
    main()
