"""A conversation with a model; each turn runs in a task of its own that may crash.

The journal is the only state. `AgentConversation` folds its records into a tree when the first turn
starts. If a turn crashes, or its reader stops early, the tree is dropped and read again for the
next turn, since it may contain records that never became durable.

Decision: docs/decisions/0130-agent-memory-in-the-journal.md
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio
import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from holdfast.agent.failures import AgentCrashed, HeadUnknown
from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.loop import CrashHistory
from holdfast.agent.model import (
    AnyMessage,
    HeadMoved,
    MessageAppended,
    ModelChoice,
    TurnNote,
    TurnOutcome,
    TurnOver,
)
from holdfast.agent.ports import Tool
from holdfast.agent.text import RECALL
from holdfast.agent.tools.recall import RecallTool
from holdfast.agent.tools.todo import TOOL, TodoTool
from holdfast.agent.turn import AgentTurn
from holdfast.agent.turn_context import (
    AgentConfig,
    ConversationLog,
    KeyRedactor,
    TurnItem,
    TurnQueue,
    chosen,
)
from holdfast.failures import Failure, UnexpectedError, boundary, to_wire
from holdfast.world import background_tasks

OPTIONS: Final = ("model", "effort", "head", "compact")
TASK: Final = "holdfast.agent.turn"  # name of a turn's task, for debuggers and crash reports

# Records per batch, between which the event loop may run other tasks: a long conversation takes
# seconds to read.
_BATCH: Final = 500

ReadRecords = Callable[[], Iterable[msgspec.Raw]]
"""Reads back all records of the conversation, in order."""


@asynccontextmanager
async def open_conversation(
    config: AgentConfig, memory: ReadRecords, crashes: CrashHistory
) -> AsyncGenerator[AgentConversation]:
    """Open a conversation from its records; leaving the context ends a running turn.

    Raises AgentUnstable if the agent crashed too often recently.
    """
    refusal = crashes.refusal(now=anyio.current_time())
    if refusal is not None:
        raise refusal
    async with background_tasks() as tasks:
        yield AgentConversation(config, memory, crashes, tasks)


class AgentConversation:
    """A conversation; it knows only what its journal contains."""

    def __init__(
        self, config: AgentConfig, memory: ReadRecords, crashes: CrashHistory, tasks: TaskGroup
    ) -> None:
        own: dict[str, Tool] = {RECALL: RecallTool(self._result), TOOL: TodoTool(self._said)}
        self._config = replace(config, tools={**config.tools, **own})
        self._memory, self._crashes, self._tasks = memory, crashes, tasks
        self._redactor = KeyRedactor(config.known)
        self._complaints = config.complaints  # not shown yet
        self._tree: ConversationTree | None = None  # None: must be read from the journal
        self._turn: AgentTurn | None = None

    async def take_turn(
        self, prompt: str, how: Mapping[str, str]
    ) -> AsyncGenerator[Sequence[TurnItem]]:
        """Run a turn, and yield records and events in batches; the last item is `TurnOver`.

        The caller must record a batch before it asks for the next. Closing the generator early
        aborts the turn; records that were not written are lost.
        """
        queue, ended = TurnQueue(), anyio.Event()
        self._tasks.start_soon(self._run, prompt, how, queue, ended, name=TASK)
        is_over = False
        try:
            while not is_over:
                batch = await queue.take()
                is_over = isinstance(batch[-1], TurnOver)
                yield batch
        finally:
            if not is_over:
                # First, so that a task which waits for its records is cancelled instead of going on
                # without them.
                self.interrupt()
            queue.close(is_kept=is_over)
            if not is_over:
                with anyio.CancelScope(shield=True):
                    await ended.wait()
                self._tree = None

    async def steer(self, text: str) -> bool:
        """Add text to the running turn; False if none accepts it."""
        return self._turn is not None and await self._turn.steer(text)

    def answer(self, question: str, answer: str) -> bool:
        """Answer an open question; False if it is not open."""
        return self._turn is not None and self._turn.answer(question, answer)

    def interrupt(self) -> None:
        """Abort the running turn; its last events say so."""
        if self._turn is not None:
            self._turn.stop()

    async def _run(
        self, prompt: str, how: Mapping[str, str], queue: TurnQueue, ended: anyio.Event
    ) -> None:
        """Run a turn, and put `TurnOver` on the queue, whatever happens."""
        reason: str | None = "its task was ended"
        try:
            with boundary("agent.turn"):
                await self._take(prompt, how, queue)
            reason = None
        except UnexpectedError as error:
            reason = f"{error.error} in {error.where}"
        except Failure as failure:
            reason = None
            queue.put(self._redactor.over(TurnOver(TurnOutcome.FAILED, to_wire(failure))))
        finally:
            self._turn = None
            if reason is not None:
                self._tree = None
                self._crashes.note(reason, now=anyio.current_time())
                over = TurnOver(TurnOutcome.FAILED, to_wire(AgentCrashed(reason=reason)))
                queue.put(self._redactor.over(over))
            ended.set()

    async def _take(self, prompt: str, how: Mapping[str, str], queue: TurnQueue) -> None:
        tree = self._tree
        if tree is None:
            tree = self._tree = await self._remembered(queue)
        log = ConversationLog(tree, queue, self._redactor)
        log.put(*map(TurnNote, self._complaints))
        self._complaints = ()
        head = how.get("head")
        if head is not None and head != tree.head:
            if head and head not in tree.entries:
                raise HeadUnknown(head=head)
            log.put(HeadMoved(head))
        self._turn = AgentTurn(self._config, log, self._choice(how))
        await self._turn.run(prompt, compacts="compact" in how)

    async def _remembered(self, queue: TurnQueue) -> ConversationTree:
        tree = ConversationTree()
        for number, memo in enumerate(self._memory()):
            tree.read(memo)
            if number % _BATCH == _BATCH - 1:
                await anyio.lowlevel.checkpoint()
        if tree.skipped:
            records = "1 record" if tree.skipped == 1 else f"{tree.skipped} records"
            queue.put(
                TurnNote(f"{records} of this conversation could not be read; the others are.")
            )
        return tree

    def _choice(self, how: Mapping[str, str]) -> ModelChoice:
        return chosen(how.get("model", ""), self._config.choice, effort=how.get("effort", ""))

    def _said(self) -> Iterator[AnyMessage]:
        """Yield the messages from the head to the root."""
        way = () if self._tree is None else self._tree.way()
        return (each.message for each in way if isinstance(each, MessageAppended))

    def _result(self, call: str) -> str | None:
        return None if self._tree is None else self._tree.result(call)
