"""The Codex SDK for programs without an event loop: the same classes with plain methods.

The event loop runs in a thread of its own, from `connect` to the end of its block. Methods may be
called from any thread; they raise and return what those of `holdfast.codex` do. An approval hook
is a plain function, called in a worker thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypedDict, TypeVar, Unpack

import anyio.from_thread
from anyio.from_thread import BlockingPortal

from holdfast.codex.app_server import AppServer as AsyncAppServer
from holdfast.codex.model import (
    Approval,
    ApprovalDecision,
    CompletedTurn,
    ConnectionState,
    Event,
    InputReply,
    ServerHealth,
)
from holdfast.codex.model import Hook as AsyncHook
from holdfast.codex.options import Prompt, ThreadOptions, TurnOptions
from holdfast.codex.thread import Thread as AsyncThread
from holdfast.codex.wire.generated import (
    Model,
    ThreadForkParams,
    ThreadListParams,
    ThreadListResponse,
    ThreadResumeParams,
    ThreadStartParams,
)
from holdfast.failures import Failure
from holdfast.rpc import Overflow
from holdfast.rpc.failures import ConnectionClosed
from holdfast.telemetry import Telemetry
from holdfast.world import in_worker

Result = TypeVar("Result")
Hook = Callable[[Approval], ApprovalDecision | InputReply]


class ConnectOptions(TypedDict, total=False):
    """What `connect` takes beside a hook, as the asynchronous one does."""

    command: Sequence[str]
    cwd: str | None
    env: Mapping[str, str] | None
    init_timeout: float
    max_in_flight: int
    message_bytes_max: int
    malformed_max: int
    approval_timeout: float
    telemetry: Telemetry | None


class Loop:
    """The event loop in its thread."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self.is_running = True

    def call(self, call: Callable[[], Awaitable[Result]]) -> Result:
        """Await something there; raise `ConnectionClosed` after the end of the connection."""
        if not self.is_running:
            raise ConnectionClosed(reason="closed by this side")
        return self._portal.call(call)


class SyncAppServer:
    """`holdfast.codex.AppServer` with plain methods."""

    def __init__(self, loop: Loop, server: AsyncAppServer) -> None:
        self._loop = loop
        self._server = server

    @classmethod
    @contextmanager
    def connect(
        cls, *, approvals: Hook | None = None, **options: Unpack[ConnectOptions]
    ) -> Generator[SyncAppServer]:
        """Start an app-server, which ends with the block."""
        hook = None if approvals is None else _in_worker(approvals)
        with anyio.from_thread.start_blocking_portal() as portal:
            connecting = AsyncAppServer.connect(approvals=hook, **options)
            with portal.wrap_async_context_manager(connecting) as server:
                loop = Loop(portal)
                try:
                    yield cls(loop, server)
                finally:
                    loop.is_running = False

    @property
    def state(self) -> ConnectionState:
        """Where the connection stands."""
        return self._server.state

    @property
    def failure(self) -> Failure | None:
        """What ended the connection; None while it stands."""
        return self._server.failure

    @property
    def is_intelligible(self) -> bool:
        """Whether what the server says makes sense."""
        return self._server.is_intelligible

    @property
    def version(self) -> str:
        """The version of the server, as it names itself."""
        return self._server.version

    def start_thread(
        self, *, more: ThreadStartParams | None = None, **options: Unpack[ThreadOptions]
    ) -> SyncThread:
        """Begin a conversation."""
        return self._thread(
            self._loop.call(lambda: self._server.start_thread(more=more, **options))
        )

    def resume_thread(
        self,
        thread: str,
        *,
        more: ThreadResumeParams | None = None,
        **options: Unpack[ThreadOptions],
    ) -> SyncThread:
        """Continue a conversation."""
        return self._thread(
            self._loop.call(lambda: self._server.resume_thread(thread, more=more, **options))
        )

    def fork_thread(
        self, thread: str, *, more: ThreadForkParams | None = None, **options: Unpack[ThreadOptions]
    ) -> SyncThread:
        """Begin another conversation that knows all that was said in one so far."""
        return self._thread(
            self._loop.call(lambda: self._server.fork_thread(thread, more=more, **options))
        )

    def list_threads(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        more: ThreadListParams | None = None,
    ) -> ThreadListResponse:
        """List stored threads, a page at a time."""
        return self._loop.call(
            lambda: self._server.list_threads(limit=limit, cursor=cursor, more=more)
        )

    def archive_thread(self, thread: str) -> None:
        """Put a thread away."""
        self._loop.call(lambda: self._server.archive_thread(thread))

    def unarchive_thread(self, thread: str) -> None:
        """Take an archived thread back."""
        self._loop.call(lambda: self._server.unarchive_thread(thread))

    def models(self, *, include_hidden: bool = False) -> tuple[Model, ...]:
        """List the models that Codex offers."""
        return self._loop.call(lambda: self._server.models(include_hidden=include_hidden))

    def request(
        self, method: str, params: object = None, *, timeout: float | None = None
    ) -> object:
        """Send any request and return the answer as plain JSON values."""
        return self._loop.call(lambda: self._server.request(method, params, timeout=timeout))

    def notifications(
        self, *, overflow: Overflow = Overflow.END, items_max: int = 100_000
    ) -> Generator[Event]:
        """Yield every notification from the first one that is asked for on."""
        return _drawn(
            self._loop,
            lambda: self._server.notifications(overflow=overflow, items_max=items_max),
        )

    def health(self) -> ServerHealth:
        """Say whether the server answers within five seconds; never raises."""
        return self._loop.call(self._server.health)

    def _thread(self, found: AsyncThread) -> SyncThread:
        return SyncThread(self._loop, found)


class SyncThread:
    """`holdfast.codex.Thread` with plain methods."""

    def __init__(self, loop: Loop, thread: AsyncThread) -> None:
        self._loop = loop
        self._thread = thread

    @property
    def id(self) -> str:
        """The id, by which it can be resumed."""
        return self._thread.id

    @property
    def path(self) -> str | None:
        """The file in which the server keeps it, if it says so."""
        return self._thread.path

    @property
    def model(self) -> str:
        """The model that it was opened with, if the server says so."""
        return self._thread.model

    @property
    def active_turn(self) -> str | None:
        """The id of the turn that runs now, if one does."""
        return self._thread.active_turn

    def run(self, prompt: Prompt, **options: Unpack[TurnOptions]) -> Generator[Event]:
        """Start a turn and yield its events as they come, up to and with its completion.

        The turn starts with the first event that is asked for.
        """
        return _drawn(self._loop, lambda: self._thread.run(prompt, **options))

    def follow(self) -> Generator[Event]:
        """Yield what is left of the turn that already runs."""
        return _drawn(self._loop, self._thread.follow)

    def ask(self, prompt: Prompt, **options: Unpack[TurnOptions]) -> CompletedTurn:
        """Run a turn to its end and return what it left."""
        return self._loop.call(lambda: self._thread.ask(prompt, **options))

    def compact(self) -> CompletedTurn:
        """Have the history summarized; wait for the end."""
        return self._loop.call(self._thread.compact)

    def steer(self, prompt: Prompt) -> None:
        """Add to what the running turn was asked."""
        self._loop.call(lambda: self._thread.steer(prompt))

    def set_name(self, name: str) -> None:
        """Give the thread a name."""
        self._loop.call(lambda: self._thread.set_name(name))

    def archive(self) -> None:
        """Put the thread away."""
        self._loop.call(self._thread.archive)

    def interrupt(self) -> bool:
        """Stop the running turn and the processes that it started; return whether it has ended."""
        return self._loop.call(self._thread.interrupt)


def _drawn(loop: Loop, begin: Callable[[], AsyncGenerator[Event]]) -> Generator[Event]:
    """Yield what an asynchronous generator yields in the thread of the event loop."""
    events = begin()

    async def next_event() -> Event | None:
        return await anext(events, None)

    try:
        while (event := loop.call(next_event)) is not None:
            yield event
    finally:
        with suppress(ConnectionClosed):
            loop.call(events.aclose)


def _in_worker(hook: Hook) -> AsyncHook:
    def decide(approval: Approval) -> ApprovalDecision | InputReply:
        try:
            return hook(approval)
        except (SystemExit, KeyboardInterrupt) as end:
            # Raised in the thread of the event loop these would end it, and not the program.
            raise RuntimeError(f"the hook raised {type(end).__name__}") from end

    async def call(approval: Approval) -> ApprovalDecision | InputReply:
        return await in_worker(lambda: decide(approval))

    return call
