"""A question has one answer, and is open only while somebody waits for it."""

from __future__ import annotations

import anyio
import pytest

from holdfast.world.questions import PendingReplies

pytestmark = pytest.mark.anyio


async def test_the_first_answer_counts_and_each_finds_its_question() -> None:
    questions, got = PendingReplies(), dict[str, str]()

    async def wait(question: str) -> None:
        with questions.open(question) as answer:
            got[question] = await answer.wait()

    async with anyio.create_task_group() as tasks:
        for question in ("a", "b"):
            tasks.start_soon(wait, question)
        await anyio.wait_all_tasks_blocked()
        assert questions.answer("b", "second")
        assert not questions.answer("b", "late")
        assert not questions.answer("c", "unasked")
        assert questions.answer("a", "first")

    assert got == {"a": "first", "b": "second"}
    assert not questions.answer("a", "too late")


async def test_who_gives_up_waits_for_nothing() -> None:
    questions = PendingReplies()
    with anyio.move_on_after(0.01), questions.open("a") as answer:
        await answer.wait()

    assert not questions.answer("a", "yes")
