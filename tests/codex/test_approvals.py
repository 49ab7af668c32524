"""Approvals: whatever the hook does, the server gets an answer and the turn goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from holdfast.codex import (
    Approval,
    ApprovalDecision,
    CommandApproval,
    FileChangeApproval,
    Hook,
    InputReply,
    Thread,
)
from holdfast.rpc.failures import ConnectionLost
from tests.codex.served import Scenario, Watched, serving, talking, until
from tests.parts import fake_app_server

pytestmark = pytest.mark.anyio
BEGIN, END = {"begin": None}, {"end": "completed"}
COMMAND, FILES = {"approve": "command"}, {"approve": "fileChange"}


def decisions(directory: Path) -> list[object]:
    """What the server was told, in order."""
    answers = [m for m in fake_app_server.received(directory) if "result" in m]
    return [answer["result"].get("decision") for answer in answers]


@pytest.mark.parametrize("decision", ApprovalDecision)
async def test_a_decision_reaches_the_server(decision: ApprovalDecision, tmp_path: Path) -> None:
    asked: list[Approval] = []

    async def hook(approval: Approval) -> ApprovalDecision:
        asked.append(approval)
        return decision

    async with talking(tmp_path, BEGIN, COMMAND, FILES, END, approvals=hook) as (_, thread):
        await thread.ask("x")

    assert decisions(tmp_path)[0] == decision.value
    assert isinstance(asked[0], CommandApproval)
    if decision is not ApprovalDecision.CANCEL:
        assert isinstance(asked[1], FileChangeApproval)


async def test_without_a_hook_everything_is_declined(tmp_path: Path) -> None:
    async with talking(tmp_path, BEGIN, COMMAND, END) as (_, thread):
        answer = await thread.ask("x")

    assert answer.status == "completed"
    assert decisions(tmp_path) == ["decline"]


@pytest.mark.promise("F13", "F27")
async def test_a_late_hook_is_a_refusal(tmp_path: Path) -> None:
    watched = Watched()

    async def hook(approval: Approval) -> ApprovalDecision:
        await anyio.sleep(60)
        return ApprovalDecision.ACCEPT

    options = {"approvals": hook, "approval_timeout": 0.2, "telemetry": watched.telemetry}
    async with talking(tmp_path, BEGIN, COMMAND, END, **options) as (_, thread):
        with anyio.fail_after(60):
            answer = await thread.ask("x")

    assert answer.status == "completed"
    assert decisions(tmp_path) == ["decline"]
    assert watched.of("approval.timeout")[0]["limit"] == 0.2
    assert watched.of("approval.requested")
    assert watched.of("approval.completed")[0]["decision"] == "decline"


@pytest.mark.promise("F14")
@pytest.mark.parametrize("returns", ["nothing", "raises"])
async def test_a_broken_hook_is_a_refusal_and_is_logged_with_its_stack(
    returns: str, tmp_path: Path
) -> None:
    watched = Watched()

    async def hook(approval: Approval) -> ApprovalDecision:
        if returns == "raises":
            raise KeyError("the hook has a bug")
        return None  # type: ignore[return-value]  # as hooks do

    async with talking(
        tmp_path, BEGIN, COMMAND, END, approvals=hook, telemetry=watched.telemetry
    ) as (server, thread):
        answer = await thread.ask("x")
        assert (await server.health()).healthy

    assert answer.status == "completed"
    assert decisions(tmp_path) == ["decline"]
    if returns == "raises":
        assert "in hook" in str(watched.of("note")[0]["stack"])


async def cancelled_future(approval: Approval) -> ApprovalDecision:
    future: asyncio.Future[ApprovalDecision] = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


async def cancelled_task(approval: Approval) -> ApprovalDecision:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await anyio.sleep(60)
    return ApprovalDecision.ACCEPT


async def cancelled_at_the_end(approval: Approval) -> ApprovalDecision:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return ApprovalDecision.ACCEPT


async def raised_cancellation(approval: Approval) -> ApprovalDecision:
    raise asyncio.CancelledError


async def cancelled_in_a_group(approval: Approval) -> ApprovalDecision:
    async with asyncio.TaskGroup() as group:
        await group.create_task(cancelled_future(approval))
    return ApprovalDecision.ACCEPT


@pytest.mark.promise("F14")
@pytest.mark.parametrize(
    "hook",
    [
        cancelled_future,
        cancelled_task,
        cancelled_at_the_end,
        raised_cancellation,
        cancelled_in_a_group,
    ],
)
async def test_a_cancelled_hook_is_a_refusal_and_the_connection_goes_on(
    hook: Hook, tmp_path: Path
) -> None:
    watched = Watched()
    is_reached = False
    async with talking(
        tmp_path, BEGIN, COMMAND, END, approvals=hook, telemetry=watched.telemetry
    ) as (server, thread):
        with anyio.fail_after(60):
            answers = [await thread.ask("x"), await thread.ask("y")]
            assert (await server.health()).healthy
        is_reached = True

    assert is_reached
    assert [answer.status for answer in answers] == ["completed"] * 2
    assert decisions(tmp_path) == ["decline"] * 2
    assert "CODEX_HOOK_CANCELLED" in str(watched.of("note")[0]["stack"])
    assert [fields["decision"] for fields in watched.of("approval.completed")] == ["decline"] * 2


class Outside(BaseException):
    """What `except Exception` does not catch, such as the outcome of a failed pytest test."""


async def raises_outside(approval: Approval) -> ApprovalDecision:
    raise Outside


async def raises_a_group(approval: Approval) -> ApprovalDecision:
    raise BaseExceptionGroup("several", [Outside(), ValueError()])


async def raises_the_end_of_a_generator(approval: Approval) -> ApprovalDecision:
    raise GeneratorExit


def plain(approval: Approval) -> ApprovalDecision:
    return ApprovalDecision.ACCEPT


@pytest.mark.promise("F14")
@pytest.mark.parametrize(
    "hook", [raises_outside, raises_a_group, raises_the_end_of_a_generator, plain]
)
async def test_a_hook_that_raises_anything_at_all_is_a_refusal(hook: Hook, tmp_path: Path) -> None:
    watched = Watched()
    async with talking(
        tmp_path, BEGIN, COMMAND, END, approvals=hook, telemetry=watched.telemetry
    ) as (server, thread):
        with anyio.fail_after(60):
            answers = [await thread.ask("x"), await thread.ask("y")]
            assert (await server.health()).healthy

    assert [answer.status for answer in answers] == ["completed"] * 2
    assert decisions(tmp_path) == ["decline"] * 2
    assert [fields["decision"] for fields in watched.of("approval.completed")] == ["decline"] * 2
    assert len([note for note in watched.of("note") if "stack" in note]) == 2


def thread_hook(release: threading.Event) -> Hook:
    async def hook(approval: Approval) -> ApprovalDecision:
        await anyio.to_thread.run_sync(release.wait, 60)
        return ApprovalDecision.ACCEPT

    return hook


def shielding_hook(release: threading.Event) -> Hook:
    async def hook(approval: Approval) -> ApprovalDecision:
        with anyio.CancelScope(shield=True):
            while not release.is_set():  # noqa: ASYNC110  # a hook of somebody else
                await anyio.sleep(0.01)
        return ApprovalDecision.ACCEPT

    return hook


def stubborn_hook(release: threading.Event) -> Hook:
    async def hook(approval: Approval) -> ApprovalDecision:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await anyio.sleep(0.01)
        return ApprovalDecision.ACCEPT

    return hook


@pytest.mark.promise("F13")
@pytest.mark.parametrize("making", [thread_hook, shielding_hook, stubborn_hook])
async def test_a_hook_that_cannot_be_cancelled_is_declined_at_the_deadline(
    making: Callable[[threading.Event], Hook], tmp_path: Path
) -> None:
    release = threading.Event()
    watched = Watched()
    options = {"approval_timeout": 0.2, "telemetry": watched.telemetry}
    async with talking(tmp_path, BEGIN, COMMAND, END, approvals=making(release), **options) as (
        server,
        thread,
    ):
        with anyio.fail_after(30):
            answer = await thread.ask("x")  # before the hook may return
        release.set()
        with anyio.fail_after(30):
            await server.health()

    assert answer.status == "completed"
    assert decisions(tmp_path) == ["decline"]
    assert watched.of("approval.timeout") == [
        {"method": "item/commandExecution/requestApproval", "limit": 0.2}
    ]


@pytest.mark.promise("F13")
async def test_a_hook_in_a_thread_does_not_hold_up_the_end_of_the_block(tmp_path: Path) -> None:
    release, asked = threading.Event(), anyio.Event()
    hook = thread_hook(release)

    async def noting(approval: Approval) -> ApprovalDecision | InputReply:
        asked.set()
        return await hook(approval)

    try:
        with anyio.fail_after(30):
            async with talking(tmp_path, BEGIN, COMMAND, END, approvals=noting) as (_, thread):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(thread.ask, "x")
                    await asked.wait()
                    tasks.cancel_scope.cancel()
        assert not release.is_set()
    finally:
        release.set()


@pytest.mark.promise("F14", "F27")
async def test_a_request_that_was_resolved_elsewhere_withdraws_its_hook(tmp_path: Path) -> None:
    asked, withdrawn = anyio.Event(), anyio.Event()
    watched = Watched()

    async def hook(approval: Approval) -> ApprovalDecision:
        asked.set()
        try:
            await anyio.sleep(60)
        finally:
            withdrawn.set()
        return ApprovalDecision.ACCEPT

    resolved = {"notify": "serverRequest/resolved", "params": {"threadId": "t", "requestId": 0}}
    scenario: Scenario = {
        "on": {
            "turn/start": [[BEGIN, COMMAND], [BEGIN, END]],
            "model/list": [[resolved, {"answer": {}}]],
        }
    }
    async with serving(tmp_path, scenario, approvals=hook, telemetry=watched.telemetry) as server:
        thread = await server.start_thread()
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(thread.ask, "x")
                await asked.wait()
                await server.request("model/list")
                await withdrawn.wait()
                tasks.cancel_scope.cancel()
            assert (await server.health()).healthy

    assert decisions(tmp_path) == []
    assert [fields["decision"] for fields in watched.of("approval.completed")] == ["withdrawn"]


@pytest.mark.promise("F15")
async def test_a_connection_that_dies_before_the_answer_breaks_nothing_else(tmp_path: Path) -> None:
    asked, ended = anyio.Event(), anyio.Event()

    async def hook(approval: Approval) -> ApprovalDecision:
        asked.set()
        try:
            await anyio.sleep(60)
        finally:
            ended.set()
        return ApprovalDecision.ACCEPT

    death = {"on": {"turn/start": [[BEGIN, COMMAND]], "model/list": [[{"kill": None}]]}}
    async with serving(tmp_path, death, approvals=hook) as server:
        thread = await server.start_thread()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lost, thread)
                await asked.wait()
                with pytest.raises(ConnectionLost):
                    await server.request("model/list")
            await ended.wait()


async def lost(thread: Thread) -> None:
    with pytest.raises(ConnectionLost):
        await thread.ask("x")


async def test_an_approval_does_not_hold_up_the_rest(tmp_path: Path) -> None:
    release = anyio.Event()

    async def hook(approval: Approval) -> ApprovalDecision:
        await release.wait()
        return ApprovalDecision.ACCEPT

    async with talking(tmp_path, BEGIN, COMMAND, END, approvals=hook) as (server, thread):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(thread.ask, "x")
            await until(lambda: thread.active_turn is not None)
            with anyio.fail_after(30):
                assert (await server.health()).healthy
            release.set()
    assert decisions(tmp_path) == ["accept"]
