"""Make a conversation shorter for its model: a summary in place of its beginning."""

from __future__ import annotations

from typing import Final

from holdfast.agent.core import compacting
from holdfast.agent.failures import AnswerIncomplete, ContextExhausted, ContextTooLong
from holdfast.agent.kit import Kit
from holdfast.agent.log import Log, new_id
from holdfast.agent.model import Answered, Choice, Compacted, Noting, Spent, Stop
from holdfast.agent.requesting import Reply

_TRIES: Final = 4  # of a request that is too long itself, each with half as much in it


class Summarizer:
    """Summarizes, and counts how often that did not help."""

    def __init__(self, kit: Kit, log: Log) -> None:
        self._kit, self._log = kit, log
        self._strikes = 0
        self.reply: Reply | None = None  # while one is made

    def is_needed(self, choice: Choice, *, besides: int) -> bool:
        """Whether the next request would leave too little room."""
        window = self._kit.models.window(choice)
        return compacting.is_full(self._log.tree, besides=besides, window=window)

    def relax(self) -> None:
        """The model has answered: it was short enough."""
        self._strikes = 0

    async def compact(self, choice: Choice, *, besides: int) -> Spent:
        """Enter a summary, and say so.

        A request that fails, or an answer that is cut, empty or refused, raises its failure and
        changes nothing. ContextExhausted if there is nothing to be won any more.
        """
        tree, window = self._log.tree, self._kit.models.window(choice)
        before = compacting.size(tree, besides=besides)
        cut = compacting.cut(tree, window=window, strikes=self._strikes)
        if cut is None or self._strikes >= compacting.STRIKES_MAX:
            raise ContextExhausted(model=choice.model, tokens=before, window=window)
        answer = await self._answer(choice, cut, before)
        spent = self._kit.paid(choice, answer.tokens)
        if answer.stop is not Stop.DONE or not answer.message.text.strip():
            self._log.put(spent)
            raise _incomplete(choice, answer)
        self._strikes += 1
        summary = compacting.finished(answer.message.text, cut)
        after = (len(summary) + cut.kept_chars + besides) // 4
        compacted = Compacted(new_id(), tree.head, summary, cut.keeps, before, after)
        self._log.put(spent, compacted)
        self._log.put(Noting(compacting.COMPRESSED))
        return spent

    async def _answer(self, choice: Choice, cut: compacting.Cut, tokens: int) -> Answered:
        window: int | None = None
        for tries in range(_TRIES):
            window = self._kit.models.window(choice)  # which may have been learned meanwhile
            prompt = compacting.summary_prompt(cut, window=window, tries=tries)
            self.reply = Reply(self._log, is_shown=False)
            try:
                return await self.reply.receive(self._kit.models, choice, prompt)
            except ContextTooLong:
                continue
            finally:
                self.reply = None
        raise ContextExhausted(model=choice.model, tokens=tokens, window=window)


def _incomplete(choice: Choice, answer: Answered) -> AnswerIncomplete:
    how = {Stop.LENGTH: "was cut off", Stop.REFUSED: "was a refusal"}.get(answer.stop, "was empty")
    reason = f"was to be a summary of the conversation and {how}"
    return AnswerIncomplete(provider=choice.provider, model=choice.model, reason=reason)
