"""One conversation with Codex."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress

import anyio

from holdfast.codex.calls import Calls
from holdfast.codex.core.turns import Gathered
from holdfast.codex.following import Followed
from holdfast.codex.model import Answer, Event
from holdfast.codex.wire.generated import (
    TextUserInput,
    ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsCleanResponse,
    TurnCompletedNotification,
    TurnInterruptParams,
    TurnInterruptResponse,
    TurnStartParams,
    TurnStartResponse,
    TurnSteerParams,
    TurnSteerResponse,
    UserInput,
)
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut

Prompt = str | Sequence[UserInput]

INTERRUPT_LIMIT = 5.0


class Thread:
    """A thread of the app-server, usable as long as the connection that it came from.

    One turn at a time: the server would mix a second prompt into the running turn, so we refuse
    it. A turn belongs to the server: leaving `run` or timing out does not stop it, `interrupt`
    does.
    """

    def __init__(self, thread: str, calls: Calls, followed: Followed) -> None:
        self.id = thread
        self._calls = calls
        self._followed = followed

    @property
    def active_turn(self) -> str | None:
        """The id of the turn that runs now, if one does."""
        return self._followed.turns.active

    async def run(self, prompt: Prompt) -> AsyncGenerator[Event]:
        """Start a turn and yield its events as they come, up to and with its completion.

        Memory is bounded however slowly they are read: deltas that nobody read are dropped, and
        said to be. Ends by raising when the connection does.
        """
        with self._followed.reading() as reader:
            turn = await self._start(prompt)
            while True:
                for event in await reader.receive():
                    yield event
                    if isinstance(event, TurnCompletedNotification) and event.turn.id == turn:
                        return

    async def follow(self) -> AsyncGenerator[Event]:
        """Yield the events of the turn that already runs, such as one found when resuming."""
        with self._followed.reading() as reader:
            while self.active_turn is not None:
                for event in await reader.receive():
                    yield event

    async def ask(self, prompt: Prompt) -> Answer:
        """Run a turn to its end and return what it left.

        Keeps every completed item of the turn in memory, command output included; deltas are
        passed over. Use `run` for a turn that may be huge.
        """
        gathered = Gathered()
        async for event in self.run(prompt):
            answer = gathered.take(event)
            if answer is not None:
                return answer
        raise AssertionError("a turn ends with its completion or raises")

    async def steer(self, prompt: Prompt) -> None:
        """Add to what the running turn was asked; refused by the server when none runs."""
        params = TurnSteerParams(self.id, self.active_turn or "", _input(prompt))
        await self._calls.typed("turn/steer", params, TurnSteerResponse)

    async def interrupt(self) -> None:
        """Stop the running turn and the processes that it left; nothing happens if none runs."""
        turn = self.active_turn
        if turn is None:
            return
        params = TurnInterruptParams(self.id, turn)
        try:
            await self._calls.typed(
                "turn/interrupt", params, TurnInterruptResponse, timeout=INTERRUPT_LIMIT
            )
        except (RequestTimedOut, ErrorResponse):
            # The server does not answer for a turn that has just been interrupted.
            if self.active_turn == turn:
                raise
        with anyio.move_on_after(INTERRUPT_LIMIT):
            await self._followed.wait_idle()
        await self._clean_terminals()

    async def _start(self, prompt: Prompt) -> str:
        with self._followed.starting():
            params = TurnStartParams(self.id, _input(prompt))
            started = await self._calls.typed("turn/start", params, TurnStartResponse)
            self._followed.turns.started(started.turn.id)
            return started.turn.id

    async def _clean_terminals(self) -> None:
        """End what an interrupted command left running; the server keeps it otherwise."""
        params = ThreadBackgroundTerminalsCleanParams(self.id)
        with suppress(ErrorResponse, RequestTimedOut):  # an experimental method: may be absent
            await self._calls.typed(
                "thread/backgroundTerminals/clean",
                params,
                ThreadBackgroundTerminalsCleanResponse,
                timeout=INTERRUPT_LIMIT,
            )


def _input(prompt: Prompt) -> tuple[UserInput, ...]:
    return (TextUserInput(prompt),) if isinstance(prompt, str) else tuple(prompt)
