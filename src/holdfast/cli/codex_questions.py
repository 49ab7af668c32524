"""Put Codex's questions to the person at the terminal, or say no in their place."""

from __future__ import annotations

import anyio

from holdfast.cli.codex_views import View
from holdfast.cli.core.look import Look
from holdfast.cli.core.question_page import (
    CHOICES,
    CHOICES_AGAIN,
    decision_of,
    input_answer,
    input_page,
    input_prompt,
    question_page,
)
from holdfast.cli.terminal import Terminal
from holdfast.codex import Approval, Decision, InputApproval, Reply

PATIENCE = 600.0  # seconds that a question stays open
_CONTEXT = 1.0  # seconds that a question waits for what led to it to be shown


class Questions:
    """Decides approvals: as the person says; a no when they cannot be asked, or do not answer."""

    def __init__(self, terminal: Terminal, view: View, look: Look) -> None:
        self._terminal, self._view, self._look = terminal, view, look
        self._shown: set[str] = set()
        self._stirred = anyio.Event()

    def shown(self, item: str) -> None:
        """Learn that an item is on the page: what is asked about it may follow."""
        self._shown.add(item)
        self._stirred.set()

    async def decide(self, approval: Approval) -> Decision | Reply:
        """Decide one approval, and let whoever follows the turn know by whom."""
        with anyio.move_on_after(_CONTEXT):
            await self._led_to(approval.item)
        if not self._terminal.can_ask:
            return await self._declined(approval, "no terminal to ask on")
        with anyio.move_on_after(PATIENCE):
            answer = await self._ask(approval)
            if answer is None and self._terminal.is_dismissed:
                answer = Decision.CANCEL  # the person wants the turn to end
            if answer is None:
                return await self._declined(approval, "no answer")
            word = answer.value if isinstance(answer, Decision) else "reply"
            await self._view.decided(approval, word)
            return answer
        return await self._declined(approval, f"no answer within {PATIENCE:g} s")

    async def _led_to(self, item: str) -> None:
        while item not in self._shown:
            self._stirred = anyio.Event()
            await self._stirred.wait()

    async def _ask(self, approval: Approval) -> Decision | Reply | None:
        if isinstance(approval, InputApproval):
            return await self._reply(approval)
        page = question_page(approval, self._look)
        return await self._terminal.ask(page, CHOICES, decision_of, again=CHOICES_AGAIN)

    async def _reply(self, approval: InputApproval) -> Reply | None:
        answers: dict[str, tuple[str, ...]] = {}
        for question in approval.questions:
            options = tuple((each.label, each.description) for each in question.options or ())
            line = await self._terminal.ask(
                input_page(question.question, options, self._look),
                input_prompt(options),
                str,
                is_secret=question.is_secret,
            )
            if line is None:
                return None
            answers[question.id] = (input_answer(line, options),)
        return Reply(answers)

    async def _declined(self, approval: Approval, why: str) -> Decision:
        await self._view.declined(approval, why)
        return Decision.DECLINE
