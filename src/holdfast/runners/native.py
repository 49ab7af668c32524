"""Carry turns out by our own agent, in this process."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Final

import msgspec

from holdfast import __version__
from holdfast.agent import OPTIONS, AgentConfig, AgentConversation, CrashHistory, open_conversation
from holdfast.agent.model import (
    AnyConversationRecord,
    AnyTurnEvent,
    ConversationRecord,
    ModelText,
    ToolResult,
    ToolUse,
    ToolUseEnded,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    TurnOutcome,
    TurnOver,
    TurnQuestion,
    TurnUsage,
    TurnWaiting,
)
from holdfast.failures import Failure
from holdfast.runners.bounded_text import BoundedText
from holdfast.runners.failures import SessionUnknown
from holdfast.runners.model import (
    AnswerChoice,
    AnyEvent,
    Delta,
    DeltaKind,
    FilesChanged,
    MemoryRecorded,
    NoticeIssued,
    PlanProgress,
    PlanStep,
    PlanUpdated,
    QuestionAsked,
    RunnerCapabilities,
    RunnerHealth,
    SessionKnown,
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnEnding,
    TurnStarted,
    UsageUpdated,
    WaitingReported,
)
from holdfast.runners.ports import AS_EVER, ReadMemory

# What our own agent tells, in the words of every runner.

_INPUT_MAX: Final = 2_000  # characters of one argument that the person is shown

_SORTS: Final = {
    TurnDeltaKind.TEXT: DeltaKind.TEXT,
    TurnDeltaKind.THINKING: DeltaKind.THOUGHT,
    TurnDeltaKind.OUTPUT: DeltaKind.OUTPUT,
}
_ENDINGS: Final = {
    TurnOutcome.COMPLETED: TurnEnding.COMPLETED,
    TurnOutcome.ABORTED: TurnEnding.INTERRUPTED,
    TurnOutcome.FAILED: TurnEnding.FAILED,
    TurnOutcome.INCOMPLETE: TurnEnding.INCOMPLETE,
    TurnOutcome.REFUSED: TurnEnding.REFUSED,
}
_encode: Final = msgspec.json.Encoder().encode


def translated(batch: Iterable[AnyConversationRecord | AnyTurnEvent]) -> Sequence[AnyEvent]:
    """The same, as events of a runner; pieces that follow one another are joined."""
    events: list[AnyEvent] = []
    for each in batch:
        if isinstance(each, ConversationRecord):
            events.append(MemoryRecorded(msgspec.Raw(_encode(each))))
        elif isinstance(each, TurnDelta):
            _add_delta(events, each)
        else:
            events.extend(_events(each))
    return events


def _add_delta(events: list[AnyEvent], piece: TurnDelta) -> None:
    sort, last = _SORTS[piece.sort], events[-1] if events else None
    if isinstance(last, Delta) and (last.item, last.sort) == (piece.item, sort):
        events[-1] = Delta(last.item, sort, last.text + piece.text)
    else:
        events.append(Delta(piece.item, sort, piece.text))


def _events(news: AnyTurnEvent) -> Iterator[AnyEvent]:
    match news:
        case ModelText(item, text, is_thinking, continues):
            yield (
                ThinkingCompleted(item, text)
                if is_thinking
                else TextCompleted(item, text, continues)
            )
        case ToolUse(item, tool, title, arguments):
            yield ToolStarted(item, tool, title, _shortened(arguments))
        case ToolUseEnded(item, done):
            yield from _ended(item, done)
        case TurnQuestion():
            yield _asked(news)
        case TurnUsage():
            yield _used(news)
        case TurnNote(text, failure):
            yield NoticeIssued(text, failure)
        case TurnWaiting(what, seconds):
            yield WaitingReported(what, seconds)
        case TurnOver(ending, failure):
            yield TurnEnded(_ENDINGS[ending], failure)
        case TurnDelta():
            raise AssertionError("pieces are joined elsewhere")


def _ended(item: str, done: ToolResult) -> Iterator[AnyEvent]:
    output = BoundedText()
    output.feed(done.text if done.shown is None else done.shown)
    is_ok = not done.is_error and not done.status
    yield ToolEnded(item, is_ok, output.text, output.left_out, done.status)
    if done.paths:
        yield FilesChanged(item, done.paths)
    if done.plan is not None:
        steps = (PlanStep(each.text, PlanProgress(each.progress.value)) for each in done.plan)
        yield PlanUpdated(tuple(steps))


def _asked(asking: TurnQuestion) -> QuestionAsked:
    last = len(asking.choices) - 1
    choices = (AnswerChoice(word, is_refusal=at == last) for at, word in enumerate(asking.choices))
    return QuestionAsked(
        asking.question,
        asking.title,
        asking.detail,
        tuple(choices),
        asking.item,
        is_approval=asking.is_leave,
    )


def _used(costing: TurnUsage) -> UsageUpdated:
    tokens = costing.tokens
    return UsageUpdated(
        model=f"{costing.choice.provider}/{costing.choice.model}",
        input_tokens=tokens.input,
        cached_tokens=tokens.cached,
        output_tokens=tokens.output,
        context_tokens=costing.context,
        window_tokens=costing.window,
        cost_usd=costing.cost_usd,
    )


def _shortened(arguments: dict[str, object]) -> dict[str, object]:
    """Arguments as a person reads them: a whole file in one of them is in the memory anyway."""
    return {
        name: f"{value[:_INPUT_MAX]}…"
        if isinstance(value, str) and len(value) > _INPUT_MAX
        else value
        for name, value in arguments.items()
    }


NAME: Final = "native"
_WORD: Final = "native-1"  # of every conversation: all that it is stands in the memory

OpenConfig = Callable[[], AbstractAsyncContextManager[AgentConfig]]
"""Gives what a conversation is held with; whatever its tools have started ends with the block."""

Examine = Callable[[], Awaitable[None]]
"""Raises what a conversation would lack; nothing is started, sent or changed for that."""


async def _nothing_lacks() -> None:
    """Whatever is wanted is there."""


class NativeRunner:
    """Our own agent; how often it crashes is counted over all of its conversations."""

    name = NAME
    capabilities = RunnerCapabilities(
        continues=True, steers=True, asks=True, confines=True, options=OPTIONS
    )

    def __init__(
        self,
        kits: OpenConfig,
        crashes: CrashHistory | None = None,
        examine: Examine = _nothing_lacks,
    ) -> None:
        """Count crashes on top of those of an earlier runner of the same session."""
        self._kits, self._examine = kits, examine
        self._crashes = crashes or CrashHistory()

    async def health(self) -> RunnerHealth:
        """Healthy if everything is there that a conversation needs; none is begun for that."""
        try:
            await self._examine()
        except Failure as failure:
            return RunnerHealth(False, reason=failure.user_message)
        return RunnerHealth(True, version=__version__)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[NativeConversation]:
        """Begin a conversation, or go on where the memory of it ends."""
        if session not in (None, _WORD):
            raise SessionUnknown(runner=NAME, session=session)

        def memos() -> Iterator[msgspec.Raw]:
            return (each.memo for each in memory())

        async with self._kits() as kit, open_conversation(kit, memos, self._crashes) as talk:
            yield NativeConversation(talk)


class NativeConversation:
    """A conversation with our own agent."""

    def __init__(self, talk: AgentConversation) -> None:
        self._talk = talk

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Take a turn; what the agent keeps comes among its events, before it acts on it."""
        first: tuple[AnyEvent, ...] = (SessionKnown(_WORD), TurnStarted())
        async with aclosing(self._talk.take_turn(prompt, how)) as batches:
            async for batch in batches:
                yield (*first, *translated(batch))
                first = ()

    async def steer(self, text: str) -> bool:
        """Add to what the running turn was asked; say whether it was taken."""
        return await self._talk.steer(text)

    async def answer(self, question: str, answer: str) -> bool:
        """Answer what the agent asked; say whether it was still waiting for that."""
        return self._talk.answer(question, answer)

    async def interrupt(self) -> None:
        """End the running turn, with all that it started."""
        self._talk.interrupt()
