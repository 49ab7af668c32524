"""Make a conversation shorter for its model: a summary in place of its beginning."""

from __future__ import annotations

from holdfast.agent.core import compacting
from holdfast.agent.failures import ContextExhausted
from holdfast.agent.kit import Kit
from holdfast.agent.log import Log, new_id
from holdfast.agent.model import Choice, Compacted, Noting, Spent
from holdfast.agent.requesting import Reply
from holdfast.failures import Failure, to_wire


class Summarizer:
    """Summarizes, and counts how often that did not help."""

    def __init__(self, kit: Kit, log: Log) -> None:
        self._kit, self._log = kit, log
        self._strikes = 0

    def is_needed(self, choice: Choice, *, besides: int) -> bool:
        """Whether the next request would leave too little room."""
        window = self._kit.models.window(choice)
        return compacting.is_full(self._log.tree, besides=besides, window=window)

    def relax(self) -> None:
        """The model has answered: it was short enough."""
        self._strikes = 0

    async def compact(self, choice: Choice, *, besides: int) -> Spent | None:
        """Enter a summary, and say so; ContextExhausted if there is nothing to be won any more."""
        tree, window = self._log.tree, self._kit.models.window(choice)
        before = compacting.size(tree, besides=besides)
        cut = compacting.cut(tree, window=window, strikes=self._strikes)
        if cut is None or self._strikes >= compacting.STRIKES_MAX:
            raise ContextExhausted(model=choice.model, tokens=before, window=window)
        self._strikes += 1
        summary, spent, trouble = await self._summary(choice, cut, window)
        after = (len(summary) + cut.kept_chars + besides) // 4
        compacted = Compacted(new_id(), tree.head, summary, cut.keeps, before, after)
        failure = None if trouble is None else to_wire(trouble)
        self._log.put(*((spent,) if spent else ()), compacted)
        self._log.put(Noting(compacting.COMPRESSED, failure))
        return spent

    async def _summary(
        self, choice: Choice, cut: compacting.Cut, window: int | None
    ) -> tuple[str, Spent | None, Failure | None]:
        prompt = compacting.summary_prompt(cut, window=window)
        reply = Reply(self._log, is_shown=False)
        try:
            answer = await reply.receive(self._kit.models, choice, prompt)
        except Failure as failure:
            return compacting.finished(compacting.stopgap(cut, failure.title), cut), None, failure
        spent = self._kit.paid(choice, answer.tokens)
        text = answer.message.text or compacting.stopgap(cut, "the model said nothing")
        return compacting.finished(text, cut), spent, None
