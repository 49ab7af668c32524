"""Codex's own questions, put to a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import anyio

from holdfast.cli.commands.codex import PATIENCE, ProgramView, Questions
from holdfast.cli.render.style import PLAIN, Look
from holdfast.cli.terminal import Answer, Terminal
from holdfast.codex import ApprovalDecision, FileChangeApproval
from tests.cli.pretending import BEGIN, END, answered, on_terminal, turning
from tests.simulation.clock import VirtualTimeLoop

QUESTIONS: list[dict[str, object]] = [
    {
        "id": "base",
        "header": "Database",
        "question": "Which database?\x1b[2J",
        "options": [
            {"label": "Postgres", "description": "big"},
            {"label": "SQLite", "description": "small"},
        ],
    },
    {"id": "key", "header": "Key", "question": "Its password?", "isSecret": True},
]
ASK: dict[str, object] = {
    "ask": "item/tool/requestUserInput",
    "params": {
        "threadId": "$thread",
        "turnId": "$turn",
        "itemId": "none",
        "isBlocking": True,
        "questions": QUESTIONS,
    },
}


def test_codex_is_answered_in_words(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, ASK, END)
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("A number, or your own words: ")
        screen.type("2\n")
        screen.expect("Your answer: ")
        screen.type("hunter2 is mine\n")
        status, shown = screen.end()

    assert status == 0
    assert answered(tmp_path) == [
        {"answers": {"base": {"answers": ["SQLite"]}, "key": {"answers": ["hunter2 is mine"]}}}
    ]
    assert "hunter2" not in shown
    assert "  | Which database?\\x1b[2J" in shown


def test_who_does_not_answer_gives_no_answers(tmp_path: Path) -> None:
    codex = turning(tmp_path, BEGIN, ASK, END)
    with on_terminal("codex", "ask", "go", home=tmp_path, HOLDFAST_CODEX=str(codex)) as screen:
        screen.expect("A number, or your own words: ")
        screen.type("\x04")
        _, shown = screen.end()

    assert answered(tmp_path) == [{"answers": {}}]
    assert "declined (no answer): ask you something" in shown


class Nobody(Terminal):
    """A terminal at which nobody sits."""

    def __init__(self) -> None:
        super().__init__()
        self.can_ask = True
        self.said: list[str] = []

    async def say(self, text: str) -> None:
        self.said.append(text)

    async def ask(
        self,
        page: str,
        prompt: str,
        meaning: Callable[[str], Answer | None],
        *,
        again: str = "",
        is_secret: bool = False,
    ) -> Answer | None:
        await anyio.sleep_forever()
        return None


def test_a_question_does_not_stay_open_for_ever() -> None:
    async def decide() -> tuple[object, float, list[str]]:
        terminal = Nobody()
        view, look = ProgramView(terminal), Look(80, is_coloured=False, signs=PLAIN)
        questions = Questions(terminal, view, look)
        questions.shown("i")
        approval = FileChangeApproval(thread="t", turn="u", item="i", reason="", changes=())
        began = anyio.current_time()
        decision = await questions.decide(approval)
        return decision, anyio.current_time() - began, terminal.said

    options = {"loop_factory": lambda: VirtualTimeLoop(seed=1)}
    decision, waited, said = anyio.run(decide, backend_options=options)
    (record,) = map(json.loads, said)

    assert (decision, round(waited)) == (ApprovalDecision.DECLINE, PATIENCE)
    assert (record["decision"], record["why"]) == ("decline", "no answer within 600 s")
