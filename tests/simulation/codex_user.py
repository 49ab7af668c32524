"""Someone who uses a thread of Codex over one connection after another, and sees that it is well.

Whatever happens, each of their turns ends exactly once and by name, and tells its news in order.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import anyio
import pytest

from holdfast.codex import AppServer, ConnectionState, Event, Thread
from holdfast.codex.failures import CodexIncompatible, CodexOverloaded, TurnInProgress
from holdfast.codex.wire.generated import (
    AgentMessageDeltaNotification,
    ItemCompletedNotification,
    ItemStartedNotification,
    TurnCompletedNotification,
)
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut
from tests.simulation.codex_server import Turn
from tests.simulation.codex_world import LOST, World

REFUSED = (RequestTimedOut, ErrorResponse, CodexOverloaded)
MOMENT = 1e-6
RETRY_LONGEST = 8.0  # seconds before an overloaded server is asked again


class Witness:
    """Sees the events of one turn, and that they come in order and without gaps."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._turns: set[str] = set()
        self._numbers: list[int] = []
        self.last: Event | None = None
        self.end: TurnCompletedNotification | None = None

    def see(self, event: Event) -> None:
        assert self.end is None, "nothing follows the end of a turn"
        self.last = event
        match event:
            case AgentMessageDeltaNotification(turn_id=""):
                return  # it lacks all that it could say
            case AgentMessageDeltaNotification(turn_id=turn, delta=number):
                self._numbers.append(int(number))
            case ItemStartedNotification(turn_id=turn, started_at_ms=number):
                self._numbers.append(number)
            case ItemCompletedNotification(turn_id=turn, completed_at_ms=number):
                self._numbers.append(number)
            case TurnCompletedNotification(turn=ended):
                turn = ended.id
            case _:
                return
        self._turns.add(turn)
        self._world.trial.note("event", event)

    def see_end(self) -> None:
        assert isinstance(self.last, TurnCompletedNotification), "a turn does not end in silence"
        self.end = self.last

    def check(self, turn: Turn | None, *, from_first: bool) -> None:
        """See that all was told, from the first on or from somewhere on, and of this turn alone."""
        assert self._turns <= ({turn.id} if turn is not None else set())
        if turn is None or not (self._numbers or from_first):
            return
        first = 1 if from_first else self._numbers[0]
        last = turn.number if self.end is not None else first + len(self._numbers) - 1
        assert self._numbers == [*range(first, last + 1)]
        if self.end is not None:
            assert (turn.id, turn.status) == (self.end.turn.id, self.end.turn.status)
            assert (self.end.turn.error is not None) == (turn.status == "failed")


class User:
    """Uses one thread, one connection after the other, until enough turns were had."""

    def __init__(self, world: World, name: str, turns: int) -> None:
        self._world = world
        self._chance = world.trial.chance
        self._name, self.turns_left = name, turns
        self._thread: str | None = None
        self._attempts = 0
        self._last_read = 0.0
        self.is_patient = True  # with turns that hang

    async def use(self, codex: AppServer) -> None:
        """Have turns until that is enough, or the connection ends."""
        try:
            thread = await self._open(codex)
        except (*LOST, *REFUSED) as end:
            self._note("not opened", end.code)
            return
        await self._follow(thread)
        while self.turns_left > 0 and codex.state is ConnectionState.CONNECTED:
            await self._have_turn(thread)
            await anyio.sleep(self._chance.choice([0.0, 0.1, 3.0]))
        if codex.failure is not None:
            assert thread.active_turn is None
            with pytest.raises(type(codex.failure)):
                await thread.ask("anyone?")

    async def _open(self, codex: AppServer) -> Thread:
        if self._thread is not None:
            try:
                return await codex.resume_thread(self._thread)
            except ErrorResponse:
                assert self._thread not in self._world.store.threads, "only a thread without a turn"
        thread = await codex.start_thread()
        self._thread = thread.id
        return thread

    async def _have_turn(self, thread: Thread) -> None:
        async with anyio.create_task_group() as tasks:
            wait = self._chance.choice([0.0, 0.1, 2.0, 50.0, math.inf, math.inf])
            if not self.is_patient:
                wait = min(wait, 60.0)
            tasks.start_soon(self._interrupt, thread, wait)
            if self._chance.random() < 0.2:
                tasks.start_soon(self._rival, thread)
            await self._run(thread)
            tasks.cancel_scope.cancel()

    async def _run(self, thread: Thread) -> None:
        """Have one turn, to its end or as far as it interests."""
        prompt = self._prompt()
        witness = Witness(self._world)
        manner = self._chance.choice([*[self._read] * 4, self._leave, self._lose_interest])
        name = await self._named(thread, witness, lambda: manner(thread, prompt, witness))
        turn = self._world.store.turn_of(prompt)
        self._note("turn", prompt, turn and turn.id, name)
        if name == CodexIncompatible.code:
            assert any(turn.is_unreadable for turn in self._world.store.threads[thread.id])
        if turn is not None:
            self.turns_left -= 1
            witness.check(turn, from_first=turn.prompts[0] == prompt)

    async def _named(
        self, thread: Thread, witness: Witness, act: Callable[[], Awaitable[None]]
    ) -> str:
        """What ended something; whatever the connection ended, ended with it."""
        began = anyio.current_time()
        try:
            await act()
        except LOST as end:
            assert witness.end is None
            longest = RETRY_LONGEST if witness.last is None else MOMENT
            assert anyio.current_time() <= max(began, self._last_read, self._world.ended) + longest
            return end.code
        except (TurnInProgress, CodexIncompatible) as end:
            assert witness.end is None
            return end.code
        except REFUSED as refusal:
            assert witness.end is None
            return refusal.code
        return witness.end.turn.status if witness.end is not None else "left"

    async def _read(self, thread: Thread, prompt: str, witness: Witness) -> None:
        await self._watch(thread, thread.run(prompt), witness)

    async def _watch(self, thread: Thread, events: AsyncGenerator[Event], witness: Witness) -> None:
        """Read to the end, at times slowly."""
        self._last_read = anyio.current_time()
        async with aclosing(events):
            async for event in events:
                witness.see(event)
                if self._chance.random() < 0.1:
                    await anyio.sleep(self._chance.choice([0.0, 0.5, 20.0]))
                self._last_read = anyio.current_time()
        witness.see_end()
        assert witness.end is not None
        assert thread.active_turn != witness.end.turn.id, "what has ended is not active"

    async def _leave(self, thread: Thread, prompt: str, witness: Witness) -> None:
        """Leave the turn after a few events, then follow what is left of it."""
        async with aclosing(thread.run(prompt)) as events:
            for _ in range(self._chance.randrange(1, 4)):
                witness.see(await anext(events))
                if isinstance(witness.last, TurnCompletedNotification):
                    witness.see_end()
                    return
        await self._follow(thread)

    async def _lose_interest(self, thread: Thread, prompt: str, witness: Witness) -> None:
        """Stop waiting after a while, whatever it waits for."""
        with anyio.move_on_after(self._chance.choice([0.0, 0.05, 10.0])):
            await self._read(thread, prompt, witness)

    async def _follow(self, thread: Thread) -> None:
        """Read on in a turn that already runs, maybe since an earlier connection."""
        if thread.active_turn is None:
            return
        witness = Witness(self._world)
        turn, name = self._world.store.turn(thread.active_turn), ""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._interrupt, thread, 60.0)
            name = await self._named(
                thread, witness, lambda: self._watch(thread, thread.follow(), witness)
            )
            tasks.cancel_scope.cancel()
        self._note("followed", name)
        witness.check(turn, from_first=False)

    async def _rival(self, thread: Thread) -> None:
        """Ask for a second turn: refused while there is one."""
        await anyio.sleep(self._chance.choice([0.0, 0.001, 1.0]))
        prompt, busy = self._prompt(), thread.active_turn
        with anyio.move_on_after(100.0):
            name = await self._named(
                thread, Witness(self._world), lambda: self._ask(thread, prompt)
            )
            self._note("rival", prompt, name)
            assert busy is None or name == TurnInProgress.code or name in [e.code for e in LOST]

    async def _ask(self, thread: Thread, prompt: str) -> None:
        answer = await thread.ask(prompt)
        turn = self._world.store.turn_of(prompt)
        assert turn is not None
        assert (answer.status, answer.text or turn.id) == (turn.status, turn.id)
        assert (answer.error is not None) == (turn.status == "failed")

    async def _interrupt(self, thread: Thread, wait: float) -> None:
        """Interrupt now and then, until it works."""
        while True:
            await anyio.sleep(wait)
            turn = self._world.store.running(thread.id)
            known = thread.active_turn
            try:
                await thread.interrupt()
            except (*LOST, *REFUSED) as end:
                self._note("not interrupted", end.code)
            else:
                if turn is not None and turn.id == known and self._world.is_connected:
                    assert turn.status != "inProgress"
            wait = 10.0

    def _prompt(self) -> str:
        self._attempts += 1
        return f"{self._name}.{self._attempts}"

    def _note(self, *what: object) -> None:
        self._world.trial.note(self._name, *what)
