"""A Codex app-server in memory: it keeps threads, plays turns, asks, and dies as it is told.

It does what the real one was seen to do: a second `turn/start` is mixed into the running turn, a
turn that was interrupted is not interrupted again (nor is that answered), what cannot be read is
passed over in silence, and one line that is no UTF-8 ends the process with status 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup

from holdfast.failures import Failure
from holdfast.rpc.transports.memory import MemoryTransport
from tests.simulation import codex_forms as forms
from tests.simulation.harness import Trial

Json = dict[str, Any]  # Any: this is a wire
INVALID, OVERLOADED = -32600, -32001


@dataclass
class Turn:
    """One turn, as the server knows it; `number` counts what it told about it, in order."""

    thread: str
    id: str
    prompts: list[str] = field(default_factory=list[str])
    status: str = "inProgress"
    number: int = 0
    is_unreadable: bool = False  # its end, which was told in a form that nobody knows
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@dataclass
class Asked:
    """A request of the server's that waits for an answer."""

    turn: Turn
    item: str
    message: Json
    answer: Json | None = None
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass
class Store:
    """What survives the death of a server: its threads with their turns, oldest first."""

    threads: dict[str, list[Turn]] = field(default_factory=dict[str, list[Turn]])
    threads_made: int = 0
    turns_made: int = 0

    def turn(self, id_: str) -> Turn:
        """The turn of this id."""
        return next(turn for turn in self._turns() if turn.id == id_)

    def turn_of(self, prompt: str) -> Turn | None:
        """The turn that took a prompt, if one did."""
        return next((turn for turn in self._turns() if prompt in turn.prompts), None)

    def running(self, thread: str) -> Turn | None:
        """The turn of a thread that has not ended."""
        turns = self.threads.get(thread, [])
        return turns[-1] if turns and turns[-1].status == "inProgress" else None

    def _turns(self) -> Iterator[Turn]:
        return chain.from_iterable(self.threads.values())


class Referee(Protocol):
    """Is told what the server sees of its client, and objects."""

    def asked_to_start(self, turn: Turn, prompt: str) -> None:
        """A prompt came, for a new turn or for one that runs already."""
        ...

    def answered(self, item: str, answer: Json) -> None:
        """An approval was answered, or, without an item, a question that makes no sense."""
        ...


class SimulatedServer:
    """One process: it serves one connection after the other, or dies with the first."""

    def __init__(self, tasks: TaskGroup, trial: Trial, store: Store, referee: Referee) -> None:
        self._trial, self._chance = trial, trial.chance
        self._tasks, self._store, self._referee = tasks, store, referee
        self._wildness = self._chance.choice([0.3, 1.0])  # how often it misbehaves
        self._outlives = self._chance.random() < 0.3  # its connection, like one on a socket
        self.is_dead = False
        self._way: MemoryTransport | None = None
        self._outgoing: list[bytes] = []
        self._stirred = anyio.Event()
        self._awake = anyio.Event()
        self._awake.set()
        self._loaded: set[str] = set()
        self._followed: set[str] = set()  # threads whose news this client gets
        self._asked: dict[int, Asked] = {}
        self._asked_count = self._items = 0
        self._handlers: dict[str, Callable[[int, Json], None]] = {
            "initialize": self._initialize,
            "thread/start": self._start_thread,
            "thread/resume": self._resume_thread,
            "turn/start": self._start_turn,
            "turn/steer": self._steer,
            "turn/interrupt": self._interrupt,
            "thread/list": lambda id_, _: self._answer(id_, {"data": [], "nextCursor": None}),
            "thread/read": self._read_thread,
            "thread/backgroundTerminals/list": lambda id_, _: self._answer(id_, {"data": []}),
            "echo": self._answer,
        }
        self._acts: list[Callable[[Turn], Awaitable[None]]] = [
            self._say,
            self._say,
            self._say,
            self._approve,
            self._approve,
            self._retry,
            self._babble,
        ]

    async def serve(self, way: MemoryTransport) -> None:
        """Serve a client until its connection ends."""
        self._way, self._outgoing, self._followed = way, [], set()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._write_on, way)
            try:
                while not self.is_dead:
                    for line in await way.receive():
                        await self._awake.wait()
                        if not self.is_dead:
                            self._hear(line)
            except Failure as end:
                self._trial.note("the server lost its client", end.code)
            tasks.cancel_scope.cancel()
        if self._way is way:
            self._way = None
            if not self._outlives:
                self._die()

    def behave(self) -> None:
        """Do no harm from now on."""
        self._wildness = 0.0
        self._awake.set()

    def exit(self) -> str:
        """End the process in good order, whatever it was doing."""
        if not self.is_dead and self._way is not None:
            self._tasks.start_soon(self._way.aclose)
        self._die()
        return "exit"

    def stop(self) -> str:
        """Neither read nor write for a while, like a process that was stopped."""
        self._awake = anyio.Event()
        self._tasks.start_soon(self._continue, self._awake)
        return "stop"

    async def _continue(self, awake: anyio.Event) -> None:
        await anyio.sleep(self._chance.choice([1.0, 40.0, 2_000.0]))
        awake.set()

    def _die(self) -> None:
        self.is_dead = True
        self._awake.set()
        for thread in sorted(self._loaded):
            if (turn := self._store.running(thread)) is not None:
                turn.status = "interrupted"
                turn.scope.cancel()

    # The wire.

    async def _write_on(self, way: MemoryTransport) -> None:
        try:
            while True:
                await self._stirred.wait()
                self._stirred = anyio.Event()
                await self._awake.wait()
                batch, self._outgoing = self._outgoing, []
                if batch:
                    await way.send(batch)
        except Failure:
            pass

    def _hear(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except UnicodeDecodeError:
            self.exit()
            return
        except ValueError:
            return
        match message:
            case {"id": int(id_), "method": str(method)}:
                self._meet(id_, method, message.get("params") or {})
            case {"id": int(id_)} if (asked := self._asked.pop(id_, None)) is not None:
                asked.answer = message
                self._referee.answered(asked.item, message)
                asked.answered.set()
            case _:
                pass

    def _meet(self, id_: int, method: str, params: Json) -> None:
        self._trial.note("server", method, id_)
        if method not in self._handlers:
            self._refuse(id_, INVALID, f"Invalid request: unknown variant `{method}`")
        elif method != "initialize" and self._happens(0.04):
            self._refuse(id_, OVERLOADED, "Server overloaded; retry later.")
        elif self._happens(0.01):
            pass  # and never answer
        else:
            self._handlers[method](id_, params)

    def _happens(self, likelihood: float) -> bool:
        return self._chance.random() < likelihood * self._wildness

    def _send(self, message: Json) -> None:
        if self._way is not None and not self.is_dead:
            self._outgoing.append(json.dumps(message).encode())
            self._stirred.set()

    def _answer(self, id_: int, result: Json) -> None:
        """Answer once, twice or late, and sometimes somebody else first."""
        message = {"id": id_, "result": result}
        if self._happens(0.05):
            self._send({"id": id_ + 1_000_000, "result": result})
        if self._happens(0.05):
            self._send(message)
        if self._happens(0.2):
            self._tasks.start_soon(self._send_later, message)
        else:
            self._send(message)

    async def _send_later(self, message: Json) -> None:
        way = self._way
        await anyio.sleep(self._chance.choice([0.0, 0.1, 5.0, 40.0, 400.0]))
        if self._way is way:
            self._send(message)

    def _refuse(self, id_: int, code: int, text: str) -> None:
        self._send({"error": {"code": code, "message": text}, "id": id_})

    def _tell(self, thread: str, method: str, /, **params: object) -> None:
        if thread in self._followed:
            self._send({"method": method, "params": {"threadId": thread, **params}})

    # What clients ask.

    def _initialize(self, id_: int, _: Json) -> None:
        if self._happens(0.02):
            self._refuse(id_, INVALID, "Invalid clientInfo.name")
        else:
            self._answer(id_, forms.INITIALIZED)

    def _start_thread(self, id_: int, _: Json) -> None:
        self._store.threads_made += 1
        thread = f"thread-{self._store.threads_made}"
        self._loaded.add(thread)
        self._followed.add(thread)
        self._answer(id_, forms.thread(thread))
        self._tell(thread, "thread/started", thread=forms.thread(thread)["thread"])

    def _resume_thread(self, id_: int, params: Json) -> None:
        thread = params["threadId"]
        if thread not in self._loaded and thread not in self._store.threads:
            self._refuse(id_, INVALID, f"no rollout found for thread id {thread}")
            return
        self._loaded.add(thread)
        self._followed.add(thread)
        last = self._store.threads.get(thread, [])[-1:]
        newest = [forms.turn(turn.id, turn.status) for turn in last]
        self._send({"id": id_, "result": forms.thread(thread, newest)})
        for asked in self._asked.values():
            if asked.turn.thread == thread:
                self._send(asked.message)

    def _read_thread(self, id_: int, params: Json) -> None:
        answer = forms.thread(params["threadId"])
        if self._store.running(params["threadId"]) is not None:
            answer["thread"]["status"] = {"type": "active", "activeFlags": []}
        self._answer(id_, answer)

    def _start_turn(self, id_: int, params: Json) -> None:
        thread, prompt = params["threadId"], params["input"][0]["text"]
        if thread not in self._loaded:
            self._refuse(id_, INVALID, f"thread not found: {thread}")
            return
        turn = self._store.running(thread)
        is_new = turn is None
        if turn is None:
            self._store.turns_made += 1
            turn = Turn(thread, f"turn-{self._store.turns_made}")
            self._store.threads.setdefault(thread, []).append(turn)
        self._referee.asked_to_start(turn, prompt)
        turn.prompts.append(prompt)
        self._answer(id_, {"turn": forms.turn(turn.id, turn.status)})
        if is_new:
            self._tell(thread, "turn/started", turn=forms.turn(turn.id, turn.status))
            self._tasks.start_soon(self._play, turn)

    def _steer(self, id_: int, params: Json) -> None:
        turn = self._store.running(params["threadId"])
        if turn is None or turn.id != params["expectedTurnId"]:
            self._refuse(id_, INVALID, "no active turn to steer")
        else:
            self._answer(id_, {"turnId": turn.id})

    def _interrupt(self, id_: int, params: Json) -> None:
        thread, wanted = params["threadId"], params["turnId"]
        turn = self._store.running(thread)
        if turn is not None and turn.id == wanted:
            self._answer(id_, {})
            self._end(turn, "interrupted")
            return
        last = self._store.threads.get(thread, [])[-1:]
        if last and last[0].id == wanted and last[0].status == "interrupted":
            return  # never answered, as seen
        self._refuse(id_, INVALID, "no active turn to interrupt")

    # What a turn does.

    async def _play(self, turn: Turn) -> None:
        with turn.scope:
            for _ in range(self._chance.randrange(1, 7)):
                await anyio.sleep(self._chance.choice([0.0, 0.0, 0.0, 0.01, 1.0, 20.0]))
                await self._chance.choice(self._acts)(turn)
            if self._chance.random() < 0.1:
                await anyio.sleep(math.inf)  # until someone interrupts it
            self._end(turn, self._chance.choice(["completed"] * 3 + ["failed"]))

    def _end(self, turn: Turn, status: str) -> None:
        if turn.status != "inProgress":
            return
        error = None
        if status == "failed":
            error = forms.error(self._chance.choice(forms.CAUSES))
            self._tell(turn.thread, "error", turnId=turn.id, error=error, willRetry=False)
        turn.status = status
        for number, asked in list(self._asked.items()):
            if asked.turn is turn:
                del self._asked[number]
        told = forms.turn(turn.id, status, error)
        if self._happens(0.02):
            del told["id"]
            turn.is_unreadable = True
        self._tell(turn.thread, "turn/completed", turn=told)
        turn.scope.cancel()

    def _about(self, turn: Turn, method: str, numbered: str, /, **params: object) -> None:
        """Tell the next thing about a turn that has not ended, with its number in this member."""
        if turn.status == "inProgress":
            turn.number += 1
            number = str(turn.number) if numbered == "delta" else turn.number
            self._tell(turn.thread, method, turnId=turn.id, **params, **{numbered: number})

    async def _say(self, turn: Turn) -> None:
        item = self._begin(turn, lambda id_: forms.message(id_, ""))
        for _ in range(self._chance.randrange(1, 5)):
            self._about(turn, "item/agentMessage/delta", "delta", itemId=item["id"])
            await anyio.sleep(self._chance.choice([0.0, 0.0, 0.001, 0.5]))
        self._finish(turn, {**item, "text": turn.id})

    def _begin(self, turn: Turn, form: Callable[[str], Json]) -> Json:
        self._items += 1
        item = form(f"{turn.id}/{self._items}")
        self._about(turn, "item/started", "startedAtMs", item=item)
        return item

    def _finish(self, turn: Turn, item: Json) -> None:
        self._about(turn, "item/completed", "completedAtMs", item=item)

    async def _retry(self, turn: Turn) -> None:
        error = forms.error({"responseStreamDisconnected": {"httpStatusCode": None}})
        self._tell(turn.thread, "error", turnId=turn.id, error=error, willRetry=True)
        await anyio.sleep(self._chance.choice([0.2, 5.0]))

    async def _babble(self, turn: Turn) -> None:
        """Say what nobody understands, or what is about something else."""
        if self._happens(0.5):
            self._tell(turn.thread, "item/unheard/of", turnId=turn.id, what=1)
            self._tell(turn.thread, "item/agentMessage/delta", turnId=None)
            self._tell("thread-of-others", "turn/completed", turn=forms.turn("x", "completed"))
        for _ in range(self._chance.choice([0, 1, 12]) if self._happens(0.5) else 0):
            self._outgoing.append(b'{"method":')
        if self._happens(0.5):
            await self._ask(turn, "", "currentTime/read", {})

    async def _approve(self, turn: Turn) -> None:
        """Ask once, or several things at once; a cancelled one ends the turn."""
        count = self._chance.choice([1, 1, 3])
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(self._approve_one, turn)

    async def _approve_one(self, turn: Turn) -> None:
        form, method = self._chance.choice(forms.ASKING)
        item = self._begin(turn, form)
        params = {"threadId": turn.thread, "turnId": turn.id, "startedAtMs": 0}
        makes_sense = not self._happens(0.05)
        if makes_sense:
            params |= {"itemId": item["id"], "command": item.get("command")}
        answer = await self._ask(turn, item["id"] if makes_sense else "", method, params)
        self._finish(turn, {**item, "status": "completed"})
        if answer.get("result", {}).get("decision") == "cancel":
            self._end(turn, "interrupted")

    async def _ask(self, turn: Turn, item: str, method: str, params: Json) -> Json:
        number = self._asked_count
        self._asked_count += 1
        message = {"id": number, "method": method, "params": params}
        asked = self._asked[number] = Asked(turn, item, message)
        if turn.thread in self._followed:
            self._send(message)
        await asked.answered.wait()
        assert asked.answer is not None
        self._tell(turn.thread, "serverRequest/resolved", requestId=number)
        return asked.answer
