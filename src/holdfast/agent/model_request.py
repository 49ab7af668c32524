"""Receive one answer of a model, and summarize a conversation that is too long."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

import anyio
from msgspec.structs import replace

from holdfast.agent.failures import AnswerIncomplete, ContextTooLong, ContextWindowExhausted
from holdfast.agent.history import compaction as compacting
from holdfast.agent.model import (
    AnswerCompleted,
    AnswerDiscarded,
    AnyAnswerDelta,
    HistoryCompacted,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    RetryScheduled,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    TurnDelta,
    TurnDeltaKind,
    TurnNote,
    UsageRecorded,
)
from holdfast.agent.ports import Models
from holdfast.agent.turn_context import AgentConfig, ConversationLog, new_id


class Reply:
    """An answer while it streams."""

    def __init__(self, log: ConversationLog, *, is_shown: bool = True) -> None:
        self.id = new_id()
        self._log, self._is_shown = log, is_shown
        self._texts: list[str] = []
        self.heard = anyio.current_time()  # time of the last delta, or of the request

    @property
    def thinking_id(self) -> str:
        """Item id of the thinking block, in deltas and when complete."""
        return f"{self.id}/thinking"

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self._texts)

    async def receive(
        self, models: Models, choice: ModelChoice, prompt: ModelRequest
    ) -> AnswerCompleted:
        """Send the request, display deltas, and return the complete answer.

        Raises the failure of the provider if retries do not help.
        """
        async with models.answering(choice, prompt) as pieces, aclosing(pieces):
            async for batch in pieces:
                for piece in batch:
                    if isinstance(piece, AnswerCompleted):
                        return replace(piece, message=_renamed(piece.message, self._log, self.id))
                    self._take(piece)
        raise AssertionError("an answer is whole, or fails")

    def _take(self, piece: AnyAnswerDelta) -> None:
        self.heard = anyio.current_time()
        match piece:
            case TextDelta(text):
                self._texts.append(text)
                self._show(TurnDelta(self.id, TurnDeltaKind.TEXT, text))
            case ThinkingDelta(text):
                self._show(TurnDelta(self.thinking_id, TurnDeltaKind.THINKING, text))
            case RetryScheduled(seconds, failure, attempt):
                words = f"Trying again in {seconds:.0f} s (attempt {attempt})."
                self._log.put(TurnNote(f"{_said_of(failure)} {words}".lstrip(), failure))
            case AnswerDiscarded(failure):
                self._texts.clear()
                words = "The partial answer was discarded; the model starts again."
                self._log.put(TurnNote(words, failure))
                self.id = new_id()
            case ToolCallDelta() | AnswerCompleted():
                pass

    def _show(self, piece: TurnDelta) -> None:
        if self._is_shown:
            self._log.show(piece)


def _renamed(message: ModelMessage, log: ConversationLog, id: str) -> ModelMessage:
    """Give every call an id that is unique in the conversation.

    Some providers reuse ids or leave them empty, and a result is matched to its call by id.
    """
    used: set[str] = set()
    calls = list(message.calls)
    for number, call in enumerate(calls):
        if not call.id or call.id in log.tree.calls or call.id in used:
            calls[number] = replace(call, id=f"call_{id}_{number}")
        used.add(calls[number].id)
    return replace(message, calls=tuple(calls)) if tuple(calls) != message.calls else message


def _said_of(failure: dict[str, object]) -> str:
    return str(failure.get("userMessage", ""))


# Compaction.

# Requests for one summary. Each sends half of what was too long for the model before.
_TRIES: Final = 4


class Summarizer:
    """Summarizes the conversation, and counts attempts that did not free enough context."""

    def __init__(self, config: AgentConfig, log: ConversationLog) -> None:
        self._config, self._log = config, log
        self._strikes = 0
        self.reply: Reply | None = None  # while a summary streams

    def is_needed(self, choice: ModelChoice, *, besides: int) -> bool:
        """Whether the next request would exceed the limit for compaction."""
        window = self._config.models.window(choice)
        return compacting.is_full(self._log.tree, besides=besides, window=window)

    def relax(self) -> None:
        """Reset the count: the model accepted a request."""
        self._strikes = 0

    async def compact(self, choice: ModelChoice, *, besides: int) -> UsageRecorded:
        """Append a summary, and return its usage.

        Raises the failure of a request, or AnswerIncomplete if the summary is truncated, empty or
        refused; the conversation is unchanged then. Raises ContextWindowExhausted if nothing is
        left to summarize.
        """
        tree, window = self._log.tree, self._config.models.window(choice)
        before = compacting.size(tree, besides=besides)
        cut = compacting.cut(tree, window=window, strikes=self._strikes)
        if cut is None or self._strikes >= compacting.STRIKES_MAX:
            raise ContextWindowExhausted(model=choice.model, tokens=before, window=window)
        answer = await self._answer(choice, cut, before)
        spent = self._config.paid(choice, answer.tokens)
        if answer.stop is not StopReason.DONE or not answer.message.text.strip():
            self._log.put(spent)
            raise _incomplete(choice, answer)
        self._strikes += 1
        summary = compacting.finished(answer.message.text, cut)
        after = (len(summary) + cut.kept_chars + besides) // 4
        compacted = HistoryCompacted(new_id(), tree.head, summary, cut.keeps, before, after)
        self._log.put(spent, compacted)
        self._log.put(TurnNote(compacting.COMPRESSED))
        return spent

    async def _answer(
        self, choice: ModelChoice, cut: compacting.Cut, tokens: int
    ) -> AnswerCompleted:
        window: int | None = None
        for tries in range(_TRIES):
            # The provider's error may have told us the real window since the last try.
            window = self._config.models.window(choice)
            prompt = compacting.summary_prompt(cut, window=window, tries=tries)
            self.reply = Reply(self._log, is_shown=False)
            try:
                return await self.reply.receive(self._config.models, choice, prompt)
            except ContextTooLong:
                continue
            finally:
                self.reply = None
        raise ContextWindowExhausted(model=choice.model, tokens=tokens, window=window)


def _incomplete(choice: ModelChoice, answer: AnswerCompleted) -> AnswerIncomplete:
    how = {StopReason.LENGTH: "was cut off", StopReason.REFUSED: "was a refusal"}.get(
        answer.stop, "was empty"
    )
    reason = f"was to be a summary of the conversation and {how}"
    return AnswerIncomplete(provider=choice.provider, model=choice.model, reason=reason)
