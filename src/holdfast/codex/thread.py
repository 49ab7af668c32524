"""One conversation with Codex."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Unpack

import anyio

from holdfast.codex.calls import RequestSender
from holdfast.codex.events import DELTAS, TURN_COMPLETED, is_end, turn_of
from holdfast.codex.failures import TurnInProgress, TurnMismatch
from holdfast.codex.model import CompletedTurn, Event
from holdfast.codex.options import Prompt, TurnOptions, turn_params, user_input
from holdfast.codex.subscriptions import SubscriptionReader, ThreadSubscription
from holdfast.codex.turns import TurnCollector
from holdfast.codex.versions import incompatible
from holdfast.codex.wire.generated import (
    ActiveThreadStatus,
    ThreadArchiveParams,
    ThreadArchiveResponse,
    ThreadBackgroundTerminalsListParams,
    ThreadBackgroundTerminalsListResponse,
    ThreadBackgroundTerminalsTerminateParams,
    ThreadBackgroundTerminalsTerminateResponse,
    ThreadCompactStartParams,
    ThreadCompactStartResponse,
    ThreadReadParams,
    ThreadReadResponse,
    ThreadSetNameParams,
    ThreadSetNameResponse,
    TurnCompletedNotification,
    TurnInterruptParams,
    TurnInterruptResponse,
    TurnStartedNotification,
    TurnStartResponse,
    TurnSteerParams,
    TurnSteerResponse,
)
from holdfast.failures import ungrouped
from holdfast.rpc.failures import ErrorResponse, RequestTimedOut

INTERRUPT_LIMIT = 5.0
MISMATCH_LIMIT = 5.0  # how long a turn may say nothing after another one has ended
ANY_TURN = ""  # the id of a turn that the server has not named yet


class Thread:
    """A thread of the app-server, usable as long as the connection that it came from.

    One turn at a time: the server would mix a second prompt into the running turn, so it is
    refused here. A turn belongs to the server: leaving `run` or timing out does not stop it,
    `interrupt` does. `path` is the file in which the server keeps it, `model` the model that it
    was opened with, if the server says so.
    """

    def __init__(
        self,
        thread: str,
        calls: RequestSender,
        followed: ThreadSubscription,
        *,
        path: str | None = None,
        model: str = "",
    ) -> None:
        self.id = thread
        self.path = path
        self.model = model
        self._calls = calls
        self._followed = followed

    @property
    def active_turn(self) -> str | None:
        """The id of the turn that runs now, if one does."""
        return self._followed.turns.active

    def run(self, prompt: Prompt, **options: Unpack[TurnOptions]) -> AsyncGenerator[Event]:
        """Start a turn and yield its events as they come, up to and with its completion.

        Memory is bounded however slowly they are read: unread deltas are dropped, and
        `EventsDropped` says how many. Raises what ends the connection, and `ThreadClosed` when the
        server stops sending news of the thread.
        """
        return self._events(lambda: self._start(prompt, options))

    def follow(self) -> AsyncGenerator[Event]:
        """Yield what is left of the turn that already runs, such as one found when resuming.

        All of it, when the turn was started by `request("turn/start", …)`. Ends as `run` does, or
        at once when no turn runs.
        """
        return self._events(None)

    async def ask(self, prompt: Prompt, **options: Unpack[TurnOptions]) -> CompletedTurn:
        """Run a turn to its end and return what it left.

        Keeps every completed item of the turn in memory, command output included; deltas are
        passed over. Use `run` for a turn that may be huge.
        """
        return await _gathered(self.run(prompt, **options))

    async def compact(self) -> CompletedTurn:
        """Have the history summarized, so that the thread fits the model again; wait for the end.

        Codex does that in a turn of its own.
        """
        return await _gathered(self._events(self._start_compaction))

    async def steer(self, prompt: Prompt) -> None:
        """Add to what the running turn was asked; refused by the server when none runs."""
        params = TurnSteerParams(self.id, self.active_turn or "", user_input(prompt))
        await self._calls.typed("turn/steer", params, TurnSteerResponse)

    async def set_name(self, name: str) -> None:
        """Give the thread a name, which lists of threads show."""
        params = ThreadSetNameParams(self.id, name)
        await self._calls.typed("thread/name/set", params, ThreadSetNameResponse)

    async def archive(self) -> None:
        """Put the thread away: a running turn ends, and lists of threads leave it out."""
        params = ThreadArchiveParams(self.id)
        await self._calls.typed("thread/archive", params, ThreadArchiveResponse)
        self._followed.close("it was archived")  # its news may come a moment later

    async def interrupt(self) -> bool:
        """Stop the running turn and the processes that it started; return whether it has ended.

        True also when none ran. False when the server agreed and the turn still goes on after
        10 seconds. A turn that is just being started is waited for, then stopped. Processes of
        earlier turns are left alone. Raises what the server refused, that it did not answer, or
        why the end of the turn cannot be seen: its thread was closed or the connection lost.
        """
        followed = self._followed
        await followed.wait_until(lambda: not followed.is_starting or self.active_turn is not None)
        turn = self.active_turn
        if turn is None:
            return followed.check_end(None)
        with anyio.move_on_after(INTERRUPT_LIMIT):  # before its news, the server refuses
            await followed.wait_until(lambda: followed.turns.has_begun or self.active_turn != turn)
        with ungrouped():
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stop, turn)
                with anyio.move_on_after(2 * INTERRUPT_LIMIT):  # what asking may take, and its end
                    await followed.wait_until(lambda: self.active_turn != turn)
                tasks.cancel_scope.cancel()
        if not followed.check_end(turn):
            return False
        await self._terminate_commands(turn)
        return True

    async def _events(self, begin: Callable[[], Awaitable[str]] | None) -> AsyncGenerator[Event]:
        """Yield events from before a turn begins until it has ended; begin none to follow one."""
        followed = self._followed
        with followed.reading(is_continued=begin is None) as reader:
            turn = await begin() if begin is not None else self.active_turn or reader.turn
            deadline, other = math.inf, ""
            while turn is not None:
                for event in await self._received(reader, deadline, turn, other):
                    of = turn_of(event)
                    if turn == ANY_TURN and isinstance(event, TurnStartedNotification):
                        turn = of
                    if of == turn:
                        deadline = math.inf
                    elif of is not None:  # left over from an earlier turn, or the ids differ
                        if is_end(event):
                            deadline, other = anyio.current_time() + MISMATCH_LIMIT, of
                        continue
                    yield event
                    if type(event) not in DELTAS and is_end(event):
                        self._check_readable(event)
                        return

    async def _received(
        self, reader: SubscriptionReader, deadline: float, turn: str, other: str
    ) -> Sequence[Event]:
        """Wait for events; give the turn up when another has ended and the thread is idle.

        Until the deadline its own events may come; then the server is asked.
        """
        while deadline < math.inf:
            with anyio.CancelScope(deadline=deadline):
                return await reader.receive()
            if not await self._is_running() and not self._followed.turns.has_ended(turn):
                self._followed.give_up(turn)
                raise TurnMismatch(thread=self.id, turn=turn, other=other)
            deadline = anyio.current_time() + MISMATCH_LIMIT
        return await reader.receive()

    async def _is_running(self) -> bool:
        """Ask whether the thread is busy; one that the server does not know is not."""
        try:
            return await is_active(self._calls, self.id)
        except ErrorResponse:
            return False

    async def _start(self, prompt: Prompt, options: TurnOptions) -> str:
        params = turn_params(self.id, prompt, options)

        async def request() -> tuple[str, str]:
            await settle_doubt(self._calls, self._followed)
            started = await self._calls.typed("turn/start", params, TurnStartResponse)
            return started.turn.id, started.turn.id

        return await self._followed.start(request)

    async def _start_compaction(self) -> str:
        async def request() -> tuple[None, str]:
            await settle_doubt(self._calls, self._followed)
            params = ThreadCompactStartParams(self.id)
            seen = self._followed.turns.seen
            await self._calls.typed("thread/compact/start", params, ThreadCompactStartResponse)
            with anyio.move_on_after(MISMATCH_LIMIT):  # until then the thread counts as busy
                await self._followed.wait_until(lambda: self._followed.turns.seen > seen)
            return None, ANY_TURN

        return await self._followed.start(request)

    async def _stop(self, turn: str) -> None:
        """Ask for the end of a turn; raise a refusal, unless it only says that it has ended.

        The server does not answer at all for one that was interrupted before: its end is enough.
        A turn that it refuses to interrupt while it tells nothing of it, or says that the thread
        is idle, is one that it does not run.
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
                if not self._followed.turns.has_begun or not await self._is_running():
                    self._followed.give_up(turn)
                raise

    async def _terminate_commands(self, turn: str) -> None:
        """Terminate what commands of a turn left running; the server keeps it otherwise."""
        items = self._followed.turns.commands_of(turn)
        if not items:
            return
        with suppress(ErrorResponse, RequestTimedOut):  # experimental methods: may be absent
            listed = await self._calls.typed(
                "thread/backgroundTerminals/list",
                ThreadBackgroundTerminalsListParams(self.id),
                ThreadBackgroundTerminalsListResponse,
                timeout=INTERRUPT_LIMIT,
            )
            for terminal in listed.data:
                if terminal.item_id in items:
                    await self._calls.typed(
                        "thread/backgroundTerminals/terminate",
                        ThreadBackgroundTerminalsTerminateParams(self.id, terminal.process_id),
                        ThreadBackgroundTerminalsTerminateResponse,
                        timeout=INTERRUPT_LIMIT,
                    )

    def _check_readable(self, end: Event) -> None:
        if not isinstance(end, TurnCompletedNotification):
            reason = "how the turn ended cannot be read"
            raise incompatible(TURN_COMPLETED, reason, version=self._calls.version)


async def is_active(calls: RequestSender, thread: str) -> bool:
    """Ask the server whether a turn runs in a thread."""
    read = await calls.typed("thread/read", ThreadReadParams(thread), ThreadReadResponse)
    return isinstance(read.thread.status, ActiveThreadStatus)


async def settle_doubt(calls: RequestSender, followed: ThreadSubscription) -> None:
    """Ask whether a turn runs that was asked for and not answered in time; refuse if so."""
    if followed.is_in_doubt:
        is_busy = await is_active(calls, followed.turns.thread)
        if is_busy or followed.turns.active is not None:
            raise TurnInProgress(thread=followed.turns.thread, turn=followed.turns.active or "")


async def _gathered(events: AsyncGenerator[Event]) -> CompletedTurn:
    gathered = TurnCollector()
    async with aclosing(events):
        async for event in events:
            answer = gathered.take(event)
            if answer is not None:
                return answer
    raise AssertionError("a turn ends with its completion or raises")
