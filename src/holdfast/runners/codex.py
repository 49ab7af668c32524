"""Codex runner: the real app-server, in the place of the draft."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import msgspec
from anyio.abc import TaskGroup

from holdfast.codex import (
    Approval,
    ApprovalDecision,
    AppServer,
    AskForApproval,
    InputApproval,
    InputReply,
    McpServerStatusUpdatedNotification,
    Thread,
    ThreadResumeParams,
    ThreadStartParams,
    TurnCompletedNotification,
    failure_of,
    native_program,
)
from holdfast.codex.failures import CodexInitRejected, CodexInitTimeout, CodexStartupFailed
from holdfast.exec import ProcessTransport
from holdfast.exec.failures import StartFailed
from holdfast.failures import Failure, to_wire
from holdfast.rpc.failures import ErrorResponse
from holdfast.runners.codex_events import decision_of, question_of, reply_of, translated
from holdfast.runners.environment import RunnerEnvironment
from holdfast.runners.failures import RunnerEnded, RunnerUnavailable, SessionUnknown
from holdfast.runners.mcp_config import McpConfig, mcp_config
from holdfast.runners.model import (
    AnyEvent,
    NoticeIssued,
    QuestionAsked,
    RunnerCapabilities,
    RunnerHealth,
    SessionKnown,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    WaitingReported,
)
from holdfast.runners.ports import AS_EVER, ReadMemory
from holdfast.world import (
    MARK,
    BatchQueue,
    PendingReplies,
    background_tasks,
    disk_failure,
    in_thread,
)

if TYPE_CHECKING:
    from holdfast.agent import McpServerConfig

# Durability of Codex's own files: a turn is over when a power cut cannot undo it.

# Parent directories to sync: Codex creates one for each year, month and day.
_ABOVE: Final = 4


async def settled(path: str | None) -> None:
    """Sync a file of Codex and its directories; without a file, or on an error, do nothing.

    Our own journal has the conversation in any case. A Codex that lost its file receives it as
    text.
    """
    if path is None:
        return
    with suppress(Failure):
        await in_thread(partial(_synced, Path(path)))


def _synced(path: Path) -> None:
    try:
        for each in (path, *path.parents[:_ABOVE]):
            file = os.open(each, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error


NAME = "codex"
# Seconds. The host's timeout for questions is shorter and decides.
PATIENCE = 7 * 24 * 3600.0
_REASON_CHARS = 300  # characters of Codex's message about a server, which may be a long type
WAITING_TOLD = 5.0  # seconds without an event before Codex is pinged, and between pings

# No network access except to the model, and a limit on retries, so that an unreachable model ends
# the turn.
_MANNERS = (
    "features.plugins=false",
    "features.apps=false",
    "features.unbounded_connection_retries=false",
)
_ENDINGS = {"completed": TurnEnding.COMPLETED, "interrupted": TurnEnding.INTERRUPTED}


class CodexRunner:
    """Codex as installed on this machine."""

    name = NAME
    capabilities = RunnerCapabilities(continues=True, steers=True, asks=True, confines=True)

    def __init__(
        self,
        stage: RunnerEnvironment,
        program: str = "codex",
        *,
        model: str | None = None,
        approval_policy: AskForApproval | None = None,
        servers: Sequence[McpServerConfig] = (),
    ) -> None:
        """Use this program; model and policy default to Codex's own configuration.

        `servers` are MCP servers in addition to those of its configuration.
        """
        self._stage = stage
        self._program = program
        self._model = model
        self._approval_policy: AskForApproval | None = approval_policy
        self._servers = tuple(servers)

    async def health(self) -> RunnerHealth:
        """Healthy if the app-server starts and responds."""
        try:
            async with self._connected(_Asking()) as (server, _):
                health = await server.health()
        except Failure as failure:
            return RunnerHealth(False, reason=failure.user_message, remedy=_REMEDY)
        return RunnerHealth(health.healthy, reason=health.reason)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[CodexConversation]:
        """Start Codex, and start or resume a thread."""
        del memory  # unused: Codex stores threads itself
        questions = _Asking()
        self._stage.clear()
        async with self._connected(questions) as (server, transport), background_tasks() as tasks:
            notices = _Notices()
            try:
                thread = await self._opened(server, session, notices, tasks)
            except ErrorResponse as refused:
                if session is None:
                    raise
                raise SessionUnknown(runner=NAME, session=session) from refused
            yield CodexConversation(thread, server, transport, questions, notices, tasks)

    async def fork(self, session: str) -> str:
        """Fork a thread; return the id of the copy."""
        async with self._connected(_Asking()) as (server, _):
            try:
                return (await server.fork_thread(session, cwd=self._stage.root)).id
            except ErrorResponse as refused:
                raise SessionUnknown(runner=NAME, session=session) from refused

    @asynccontextmanager
    async def _connected(
        self, questions: _Asking
    ) -> AsyncGenerator[tuple[AppServer, ProcessTransport]]:
        path = self._stage.environment.get("PATH", "")
        program = native_program(self._program, path=path, cwd=self._stage.root)
        manners = [word for each in _MANNERS for word in ("-c", each)]
        try:
            async with self._stage.agent(program, "app-server", *manners) as process:
                transport = ProcessTransport(process)
                async with AppServer.connect(
                    transport=transport,
                    approvals=questions.ask,
                    approval_timeout=PATIENCE,
                ) as server:
                    yield server, transport
        except (StartFailed, CodexStartupFailed, CodexInitTimeout, CodexInitRejected) as failure:
            reason = failure.user_message
            raise RunnerUnavailable(runner=NAME, reason=reason, remedy=_REMEDY) from failure

    async def _opened(
        self, server: AppServer, session: str | None, notices: _Notices, tasks: TaskGroup
    ) -> Thread:
        """Start or resume a thread with our servers, or without them if Codex refuses."""
        if not self._servers:
            return await self._thread(server, session)
        config = await self._config(server)
        notices.add(*config.notices)
        if not config.names:
            return await self._thread(server, session)
        # Subscribe before thread/start: server status is sent before and after its response.
        tasks.start_soon(notices.follow, server, config.names)
        try:
            return await self._thread(server, session, config.settings)
        except ErrorResponse as refused:
            thread = await self._thread(server, session)
            names = ", ".join(config.names)
            why = refused.error_message.strip()[:_REASON_CHARS]
            notices.add(f"Not connected: the MCP servers {names}. Codex refuses them: {why}")
            return thread

    async def _config(self, server: AppServer) -> McpConfig:
        """Return the additional configuration of a thread."""
        settings: object = {}
        with suppress(ErrorResponse):  # thread/start will be refused, too, with the reason
            settings = await server.request("config/read", {"cwd": self._stage.root})
        # The mark in the environment is needed to find servers that outlive a killed Codex.
        return mcp_config(self._servers, settings, inherited=(MARK,))

    async def _thread(
        self, server: AppServer, session: str | None, config: dict[str, object] | None = None
    ) -> Thread:
        root = self._stage.root
        if session is not None:
            more = ThreadResumeParams(session, config=config)
            return await server.resume_thread(session, more=more, cwd=root)
        return await server.start_thread(
            more=ThreadStartParams(config=config),
            cwd=root,
            model=self._model,
            approval_policy=self._approval_policy,
        )


_REMEDY = "Install it (npm install -g @openai/codex) and sign in (codex login)."


class CodexConversation:
    """A Codex thread."""

    def __init__(
        self,
        thread: Thread,
        server: AppServer,
        transport: ProcessTransport,
        questions: _Asking,
        notices: _Notices,
        tasks: TaskGroup,
    ) -> None:
        self._thread = thread
        self._server = server
        self._transport = transport
        self._questions = questions
        self._notices = notices
        self._tasks = tasks

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Run a turn; approval requests are events."""
        del how
        inbox: BatchQueue[AnyEvent] = BatchQueue()
        self._questions.inbox = inbox
        over, is_over = anyio.Event(), False
        self._tasks.start_soon(self._run, prompt, inbox, over)
        try:
            while not is_over:
                events = await inbox.receive()
                is_over = any(isinstance(each, TurnEnded) for each in events)
                yield events
        finally:
            if not is_over:
                with anyio.CancelScope(shield=True):
                    async with background_tasks() as tasks:
                        tasks.start_soon(_emptied, inbox)
                        await self.interrupt()
                        await over.wait()
            self._questions.withdraw()

    async def steer(self, text: str) -> bool:
        """Add input to the running turn; False if it is not accepted."""
        try:
            await self._thread.steer(text)
        except ErrorResponse:
            return False
        return True

    async def answer(self, question: str, answer: str) -> bool:
        """Answer an approval or question; False if it is no longer open."""
        return self._questions.answer(question, answer)

    async def interrupt(self) -> None:
        """End the turn and its processes; a Codex that does not respond is killed."""
        try:
            has_ended = await self._thread.interrupt()
        except Failure:
            has_ended = False
        if not has_ended:
            await self._transport.aclose()

    async def _run(self, prompt: str, inbox: BatchQueue[AnyEvent], over: anyio.Event) -> None:
        silence = _Silence(self._thread.model)
        try:
            await inbox.put((SessionKnown(self._thread.id),))
            async with background_tasks() as tasks, aclosing(self._thread.run(prompt)) as events:
                tasks.start_soon(self._report_waiting, silence, inbox)
                async for event in events:
                    if noticed := self._notices.take():
                        await inbox.put(noticed)
                    if isinstance(event, TurnCompletedNotification):
                        silence.end()
                        await settled(self._thread.path)
                        await inbox.put((_end(event),))
                    elif meant := translated(event):
                        silence.end(meant)
                        await inbox.put(meant)
        except Failure as failure:
            # The events can no longer be followed: the turn must not go on unobserved.
            await self.interrupt()
            ended = RunnerEnded(
                runner=NAME, reason=failure.user_message, stderr=self._transport.stderr
            )
            await inbox.put((TurnEnded(TurnEnding.FAILED, to_wire(ended)),))
        finally:
            # Also on cancellation, when no end was emitted.
            over.set()

    async def _report_waiting(self, silence: _Silence, inbox: BatchQueue[AnyEvent]) -> None:
        """Report that the turn waits, as long as Codex answers pings.

        An app-server that does not answer, such as a stopped one, is not reported: the turn then
        shows as stuck. A lost connection ends the turn elsewhere.
        """
        while True:
            await anyio.sleep(WAITING_TOLD)
            if self._questions.is_asking:
                silence.end()  # waiting for the person
                continue
            begun = silence.begun
            if anyio.current_time() - begun < WAITING_TOLD:
                continue
            health = await self._server.health()
            if health.healthy and silence.begun == begun:
                await inbox.put((silence.report(),))


class _Notices:
    """Notices about the MCP servers of a thread, until a turn can emit them."""

    def __init__(self) -> None:
        self._waiting: list[AnyEvent] = []

    def add(self, *texts: str) -> None:
        """Add notices for the running or the next turn."""
        self._waiting += [NoticeIssued(text) for text in texts]

    def take(self) -> tuple[AnyEvent, ...]:
        """Return and remove all notices."""
        taken, self._waiting = tuple(self._waiting), []
        return taken

    async def follow(self, server: AppServer, names: Sequence[str]) -> None:
        """Collect servers that fail to start, until all have started or failed."""
        waited_for = set(names)
        with suppress(Failure):  # the turn reports the lost connection
            async with aclosing(server.notifications()) as news:
                async for event in news:
                    if isinstance(event, McpServerStatusUpdatedNotification):
                        waited_for -= self._started(event, waited_for)
                    if not waited_for:
                        return

    def _started(self, event: McpServerStatusUpdatedNotification, names: set[str]) -> set[str]:
        """Return the server that has started or failed."""
        if event.status == "starting" or event.name not in names:
            return set()
        if event.status != "ready":
            why = (event.error or event.status).strip()[:_REASON_CHARS]
            self.add(f"The MCP server {event.name} did not start: {why}")
        return {event.name}


class _Silence:
    """Time since the last event of a turn, and its running tools."""

    def __init__(self, model: str) -> None:
        self.begun = anyio.current_time()
        self._model = model
        self._tools: set[str] = set()  # running tools

    def end(self, events: Sequence[AnyEvent] = ()) -> None:
        """Restart the timer, and update the running tools from events."""
        self.begun = anyio.current_time()
        for event in events:
            if isinstance(event, ToolStarted):
                self._tools.add(event.item)
            elif isinstance(event, ToolEnded):
                self._tools.discard(event.item)

    def report(self) -> WaitingReported:
        """Return what the turn waits for: a running tool, or else the model."""
        is_model = self._model and not self._tools
        what = f"{NAME}/{self._model}" if is_model else NAME
        return WaitingReported(what, anyio.current_time() - self.begun)


class _Asking:
    """Open questions of Codex."""

    def __init__(self) -> None:
        self.inbox: BatchQueue[AnyEvent] = BatchQueue()
        self._questions = PendingReplies()
        self._asking: set[anyio.CancelScope] = set()
        self._count = 0

    async def ask(self, approval: Approval) -> ApprovalDecision | InputReply:
        """Ask the person all questions of an approval, until the turn is over."""
        with anyio.CancelScope() as scope:
            self._asking.add(scope)
            try:
                return await self._decided(approval)
            finally:
                self._asking.discard(scope)
        return ApprovalDecision.DECLINE

    @property
    def is_asking(self) -> bool:
        """Whether a question is open."""
        return bool(self._asking)

    def withdraw(self) -> None:
        """Close all open questions."""
        self._questions = PendingReplies()
        for scope in self._asking:
            scope.cancel()

    async def _decided(self, approval: Approval) -> ApprovalDecision | InputReply:
        if not isinstance(approval, InputApproval):
            return decision_of(await self._inquire(question_of(approval)))
        count = len(approval.questions)
        answers = [await self._inquire(question_of(approval, number)) for number in range(count)]
        return reply_of(approval, tuple(answers))

    def answer(self, question: str, answer: str) -> bool:
        """Answer a question; False if it is not open."""
        return self._questions.answer(question, answer)

    async def _inquire(self, asked: QuestionAsked) -> str:
        self._count += 1  # one item may ask several times
        asked = msgspec.structs.replace(asked, question=f"{asked.item}/{self._count}")
        with self._questions.open(asked.question) as answer:
            await self.inbox.put((asked,))
            return await answer.wait()


async def _emptied(inbox: BatchQueue[AnyEvent]) -> None:
    """Discard events of an inbox without a reader, so that writers are not blocked."""
    while True:
        await inbox.receive()


def _end(event: TurnCompletedNotification) -> TurnEnded:
    error = event.turn.error
    ending = _ENDINGS.get(event.turn.status, TurnEnding.FAILED)
    return TurnEnded(ending, to_wire(failure_of(error)) if error is not None else None)
