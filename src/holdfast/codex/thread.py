"""One conversation with Codex."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress

import anyio

from holdfast.codex.calls import Calls
from holdfast.codex.core.events import DELTAS, TURN_COMPLETED, is_end, turn_of
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
from holdfast.failures import ungrouped
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse, RequestTimedOut

Prompt = str | Sequence[UserInput]

INTERRUPT_LIMIT = 5.0


class Thread:
    """A thread of the app-server, usable as long as the connection that it came from.

    One turn at a time: the server would mix a second prompt into the running turn, so we refuse
    it. A turn belongs to the server: leaving `run` or timing out does not stop it, `interrupt`
    does. `path` is the file in which the server keeps it, if it says so.
    """

    def __init__(
        self, thread: str, calls: Calls, followed: Followed, *, path: str | None = None
    ) -> None:
        self.id = thread
        self.path = path
        self._calls = calls
        self._followed = followed

    @property
    def active_turn(self) -> str | None:
        """The id of the turn that runs now, if one does."""
        return self._followed.turns.active

    def run(self, prompt: Prompt) -> AsyncGenerator[Event]:
        """Start a turn and yield its events as they come, up to and with its completion.

        Memory is bounded however slowly they are read: deltas that nobody read are dropped, and
        said to be. Ends by raising when the connection does.
        """
        return self._events(lambda: self._start(prompt))

    def follow(self) -> AsyncGenerator[Event]:
        """Yield what is left of the turn that already runs, such as one found when resuming.

        Ends as `run` does, or at once when no turn runs.
        """
        return self._events(self._running)

    async def ask(self, prompt: Prompt) -> Answer:
        """Run a turn to its end and return what it left.

        Keeps every completed item of the turn in memory, command output included; deltas are
        passed over. Use `run` for a turn that may be huge.
        """
        gathered = Gathered()
        async with aclosing(self.run(prompt)) as events:
            async for event in events:
                answer = gathered.take(event)
                if answer is not None:
                    return answer
        raise AssertionError("a turn ends with its completion or raises")

    async def steer(self, prompt: Prompt) -> None:
        """Add to what the running turn was asked; refused by the server when none runs."""
        params = TurnSteerParams(self.id, self.active_turn or "", _input(prompt))
        await self._calls.typed("turn/steer", params, TurnSteerResponse)

    async def interrupt(self) -> None:
        """Stop the running turn and the processes that it left; nothing happens if none runs.

        A turn that is just being started is waited for, then stopped.
        """
        followed = self._followed
        await followed.wait_until(lambda: not followed.is_starting)
        turn = self.active_turn
        if turn is None:
            return
        with anyio.move_on_after(INTERRUPT_LIMIT):  # before its news, the server refuses
            await followed.wait_until(lambda: followed.turns.has_begun or self.active_turn != turn)
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop, turn)
                with anyio.move_on_after(2 * INTERRUPT_LIMIT):  # what asking may take, and its end
                    await followed.wait_until(lambda: self.active_turn != turn)
                tasks.cancel_scope.cancel()
        await self._clean_terminals()

    async def _events(self, begin: Callable[[], Awaitable[str | None]]) -> AsyncGenerator[Event]:
        """Yield events from before a turn begins until it has ended."""
        with self._followed.reading() as reader:
            turn = await begin()
            while turn is not None:
                for event in await reader.receive():
                    if turn_of(event) not in (None, turn):
                        continue  # what is left of a turn that was given up before it began
                    yield event
                    if type(event) not in DELTAS and is_end(event):
                        _check_readable(event)
                        return

    async def _running(self) -> str | None:
        return self.active_turn

    async def _start(self, prompt: Prompt) -> str:
        with self._followed.starting():
            params = TurnStartParams(self.id, _input(prompt))
            started = await self._calls.typed("turn/start", params, TurnStartResponse)
            self._followed.turns.started(started.turn.id)
            return started.turn.id

    async def _stop(self, turn: str) -> None:
        """Ask for the end of a turn; raise a refusal, unless it only says that it has ended.

        The server does not answer at all for one that was interrupted before: its end is enough.
        """
        params = TurnInterruptParams(self.id, turn)
        try:
            await self._calls.typed(
                "turn/interrupt", params, TurnInterruptResponse, timeout=INTERRUPT_LIMIT
            )
        except ErrorResponse:
            with anyio.move_on_after(INTERRUPT_LIMIT):
                await self._followed.wait_until(lambda: self.active_turn != turn)
            if self.active_turn == turn:
                raise

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


def _check_readable(end: Event) -> None:
    if not isinstance(end, TurnCompletedNotification):
        raise AnswerInvalid(method=TURN_COMPLETED, reason="how the turn ended cannot be read")


def _input(prompt: Prompt) -> tuple[UserInput, ...]:
    return (TextUserInput(prompt),) if isinstance(prompt, str) else tuple(prompt)
