"""Native runner: our own agent, in the host's process."""

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

# Translation of the agent's records and events to runner events.

_INPUT_MAX: Final = 2_000  # characters of one argument for display

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
    """Translate items; consecutive deltas are joined."""
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
        is_approval=asking.is_permission,
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
    """Truncate arguments for display; the full ones are in the conversation records."""
    return {
        name: f"{value[:_INPUT_MAX]}…"
        if isinstance(value, str) and len(value) > _INPUT_MAX
        else value
        for name, value in arguments.items()
    }


NAME: Final = "native"
# A constant id: the whole conversation is in the records.
_WORD: Final = "native-1"

OpenConfig = Callable[[], AbstractAsyncContextManager[AgentConfig]]
"""Opens the configuration of a conversation; leaving it ends what tools have started."""

Examine = Callable[[], Awaitable[None]]
"""Raises if something needed is missing; starts, sends and changes nothing."""


async def _nothing_lacks() -> None:
    """Default: nothing is missing."""


class NativeRunner:
    """Our own agent; crashes are counted across its conversations."""

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
        """Continue the crash count of an earlier runner of the session, if given."""
        self._kits, self._examine = kits, examine
        self._crashes = crashes or CrashHistory()

    async def health(self) -> RunnerHealth:
        """Healthy if everything needed is present; no conversation is started."""
        try:
            await self._examine()
        except Failure as failure:
            return RunnerHealth(False, reason=failure.user_message)
        return RunnerHealth(True, version=__version__)

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[NativeConversation]:
        """Start a conversation, or continue it from its records."""
        if session not in (None, _WORD):
            raise SessionUnknown(runner=NAME, session=session)

        def memos() -> Iterator[msgspec.Raw]:
            return (each.memo for each in memory())

        async with (
            self._kits() as config,
            open_conversation(config, memos, self._crashes) as conversation,
        ):
            yield NativeConversation(conversation)


class NativeConversation:
    """A conversation with our own agent."""

    def __init__(self, conversation: AgentConversation) -> None:
        self._conversation = conversation

    async def take_turn(
        self, prompt: str, how: Mapping[str, str] = AS_EVER
    ) -> AsyncGenerator[Sequence[AnyEvent]]:
        """Run a turn; the agent's records are events, and durable before it acts on them."""
        first: tuple[AnyEvent, ...] = (SessionKnown(_WORD), TurnStarted())
        async with aclosing(self._conversation.take_turn(prompt, how)) as batches:
            async for batch in batches:
                yield (*first, *translated(batch))
                first = ()

    async def steer(self, text: str) -> bool:
        return await self._conversation.steer(text)

    async def answer(self, question: str, answer: str) -> bool:
        return self._conversation.answer(question, answer)

    async def interrupt(self) -> None:
        self._conversation.interrupt()
