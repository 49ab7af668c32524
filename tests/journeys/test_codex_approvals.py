"""Approvals of the real Codex: asked once, answered always, and meant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from holdfast.codex import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    CompletedTurn,
    FileChangeApproval,
    Thread,
)
from holdfast.codex.wire.generated import (
    AddPatchChangeKind,
    CommandExecutionThreadItem,
    FileChangeThreadItem,
    FileUpdateChange,
)
from tests.codex.served import Watched
from tests.journeys.stage import Stage, staged
from tests.parts.model_acts import Reply, Say, add_file, run

pytestmark = pytest.mark.anyio

TOUCH = [run("touch made.txt")]
PATCH = [add_file("made.txt", "new")]
DONE = [Say("Done.")]


@dataclass
class Person:
    """Decides as told, and remembers what was asked."""

    decision: ApprovalDecision
    asked: list[Approval] = field(default_factory=list)

    async def decide(self, approval: Approval) -> ApprovalDecision:
        self.asked.append(approval)
        return self.decision


@asynccontextmanager
async def asking(
    place: Path,
    script: Sequence[Reply],
    **options: Any,  # Any: whatever `connect` takes
) -> AsyncIterator[tuple[Stage, Thread]]:
    """A thread that asks before everything it does."""
    async with staged(place, script) as stage, stage.connect(**options) as server:
        yield stage, await server.start_thread(cwd=place, approval_policy="untrusted")


def deeds(answer: CompletedTurn) -> list[str | None]:
    """How each command and file change of a turn ended."""
    kinds = (CommandExecutionThreadItem, FileChangeThreadItem)
    return [item.status for item in answer.items if isinstance(item, kinds)]


async def test_an_accepted_command_is_run(tmp_path: Path) -> None:
    person = Person(ApprovalDecision.ACCEPT)
    async with asking(tmp_path, [TOUCH, TOUCH, DONE], approvals=person.decide) as (_, thread):
        answer = await thread.ask("make it")

    (first, second) = person.asked
    assert isinstance(first, CommandApproval)
    assert (first.thread, first.item, first.cwd) == (thread.id, "call_1", str(tmp_path))
    assert "touch made.txt" in first.command
    assert isinstance(second, CommandApproval)  # once is once
    assert (answer.status, deeds(answer)) == ("completed", ["completed", "completed"])
    assert (tmp_path / "made.txt").exists()


async def test_what_is_accepted_for_the_session_is_not_asked_again(tmp_path: Path) -> None:
    person = Person(ApprovalDecision.ACCEPT_FOR_SESSION)
    async with asking(tmp_path, [TOUCH, TOUCH, DONE], approvals=person.decide) as (_, thread):
        answer = await thread.ask("make it")

    assert len(person.asked) == 1
    assert (answer.status, deeds(answer)) == ("completed", ["completed", "completed"])


async def test_a_declined_command_is_not_run_and_the_turn_goes_on(tmp_path: Path) -> None:
    person = Person(ApprovalDecision.DECLINE)
    async with asking(tmp_path, [TOUCH, DONE], approvals=person.decide) as (stage, thread):
        answer = await thread.ask("make it")

    assert (answer.status, answer.text, deeds(answer)) == ("completed", "Done.", ["declined"])
    assert "rejected by user" in str(stage.model.requests[1].tool_outputs["call_1"])
    assert not (tmp_path / "made.txt").exists()


async def test_a_cancelled_command_ends_the_turn(tmp_path: Path) -> None:
    person = Person(ApprovalDecision.CANCEL)
    async with asking(tmp_path, [TOUCH, DONE], approvals=person.decide) as (stage, thread):
        cancelled = await thread.ask("make it")
        assert len(stage.model.requests) == 1
        after = await thread.ask("then not")

    assert (cancelled.status, cancelled.text) == ("interrupted", "")
    assert not (tmp_path / "made.txt").exists()
    assert (after.status, after.text) == ("completed", "Done.")


@pytest.mark.parametrize(("decision", "status"), [("accept", "completed"), ("decline", "declined")])
async def test_a_file_change_is_shown_before_it_is_made(
    decision: str, status: str, tmp_path: Path
) -> None:
    person = Person(ApprovalDecision(decision))
    async with asking(tmp_path, [PATCH, DONE], approvals=person.decide) as (_, thread):
        answer = await thread.ask("make it")

    (asked,) = person.asked
    assert isinstance(asked, FileChangeApproval)
    change = FileUpdateChange(AddPatchChangeKind(), "new\n", str(tmp_path / "made.txt"))
    assert asked.changes == (change,)
    assert (answer.status, deeds(answer)) == ("completed", [status])
    assert (tmp_path / "made.txt").exists() is (decision == "accept")


async def test_without_a_hook_everything_is_declined(tmp_path: Path) -> None:
    async with asking(tmp_path, [TOUCH, PATCH, DONE]) as (_, thread):
        answer = await thread.ask("make it")

    assert (answer.status, deeds(answer)) == ("completed", ["declined", "declined"])
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.promise("F13")
async def test_nobody_there_to_decide_is_a_refusal_and_the_turn_goes_on(tmp_path: Path) -> None:
    async def away(approval: Approval) -> ApprovalDecision:
        await anyio.sleep(600)
        return ApprovalDecision.ACCEPT

    watched = Watched()
    options = {"approvals": away, "approval_timeout": 0.2, "telemetry": watched.telemetry}
    async with asking(tmp_path, [TOUCH, DONE], **options) as (_, thread):
        answer = await thread.ask("make it")

    assert (answer.status, answer.text, deeds(answer)) == ("completed", "Done.", ["declined"])
    asked = "item/commandExecution/requestApproval"
    assert watched.of("approval.timeout") == [{"method": asked, "limit": 0.2}]
    assert not (tmp_path / "made.txt").exists()


@pytest.mark.promise("F14", "F27")
async def test_a_hook_that_raises_is_a_refusal_and_is_logged_with_its_stack(tmp_path: Path) -> None:
    async def broken(approval: Approval) -> ApprovalDecision:
        raise KeyError("the hook has a bug")

    watched = Watched()
    options = {"approvals": broken, "telemetry": watched.telemetry}
    async with asking(tmp_path, [TOUCH, DONE, DONE], **options) as (_, thread):
        answer = await thread.ask("make it")
        after = await thread.ask("go on")

    assert (answer.status, deeds(answer)) == ("completed", ["declined"])
    assert after.status == "completed"
    assert "in broken" in str(watched.of("note")[0]["stack"])
    asked = "item/commandExecution/requestApproval"
    assert [fields["method"] for fields in watched.of("approval.requested")] == [asked]
    assert [fields["decision"] for fields in watched.of("approval.completed")] == ["decline"]
    assert not (tmp_path / "made.txt").exists()


async def test_several_approvals_are_open_at_once_and_each_gets_its_own_answer(
    tmp_path: Path,
) -> None:
    everyone = anyio.Event()
    waiting: list[str] = []

    async def decide(approval: Approval) -> ApprovalDecision:
        waiting.append(approval.item)
        if len(waiting) == 3:
            everyone.set()
        await everyone.wait()
        return ApprovalDecision.DECLINE if approval.item == "b" else ApprovalDecision.ACCEPT

    calls = [run(f"touch {name}.txt", call_id=name) for name in "abc"]
    async with asking(tmp_path, [calls, DONE], approvals=decide) as (_, thread):
        answer = await thread.ask("make them")

    assert answer.status == "completed"
    assert [(tmp_path / f"{name}.txt").exists() for name in "abc"] == [True, False, True]


async def test_a_turn_can_be_interrupted_while_it_asks(tmp_path: Path) -> None:
    asked = anyio.Event()
    answers: list[CompletedTurn] = []

    async def slow(approval: Approval) -> ApprovalDecision:
        asked.set()
        await anyio.sleep(600)
        return ApprovalDecision.ACCEPT

    async with asking(tmp_path, [TOUCH, DONE], approvals=slow) as (_, thread):

        async def ask() -> None:
            answers.append(await thread.ask("make it"))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await asked.wait()
                await thread.interrupt()
        after = await thread.ask("go on")

    assert [answer.status for answer in answers] == ["interrupted"]
    assert (after.status, after.text) == ("completed", "Done.")
    assert not (tmp_path / "made.txt").exists()
