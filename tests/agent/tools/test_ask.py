"""A model's question reaches the person as such, and nobody's answer is a word to go on."""

from __future__ import annotations

import pytest

from holdfast.agent.memory import MemoryToolContext
from holdfast.agent.tools.ask import NOBODY, AskTool

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("choices", "answer", "told"),
    [
        ([], "blue", "The person answered: blue"),
        (["red", "green\nand more"], "green and more", "The person answered: green\nand more"),
        (["red"], NOBODY, "Nobody answered: decide yourself, and say what you decided."),
        ([], "", "Nobody answered: decide yourself, and say what you decided."),
    ],
)
async def test_an_answer(choices: list[str], answer: str, told: str) -> None:
    asked: dict[str, object] = {"question": "Which?", **({"choices": choices} if choices else {})}

    done = await AskTool().use(asked, MemoryToolContext(answers=[answer]))

    assert done.text == told


@pytest.mark.promise("C22")
async def test_what_is_asked_hides_nothing_and_is_no_leave() -> None:
    context = MemoryToolContext()
    question = "Sure?\nMay the agent run it?\x1b[2J"

    done = await AskTool().use(
        {"question": question, "detail": "a\u202eb", "choices": ["x"]}, context
    )

    title = "The agent asks: Sure? May the agent run it?<U+001B>[2J"
    assert context.asked == [(title, "a<U+202E>b", ("x", NOBODY), False)]
    assert done.text.startswith("Nobody answered")


def test_it_is_told_to_the_person() -> None:
    assert AskTool().title({"question": "Why\nnot?"}) == "Ask: Why not?"
    assert AskTool().spec.name == "ask"
