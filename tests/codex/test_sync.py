"""The SDK without an event loop: the same answers, failures and promises, by plain methods."""

from __future__ import annotations

import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.codex import (
    AgentMessageDeltaNotification,
    Approval,
    ApprovalDecision,
    ConnectionState,
    ThreadStartParams,
    TurnCompletedNotification,
    UnknownEvent,
)
from holdfast.codex import AppServer as AsyncAppServer
from holdfast.codex import Thread as AsyncThread
from holdfast.codex.failures import CodexNotFound, TurnInProgress
from holdfast.codex.sync import SyncAppServer, SyncThread
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost, RequestTimedOut
from tests.codex.served import ENV, Scenario, sent
from tests.codex.test_approvals import decisions
from tests.parts import fake_app_server

BEGIN, SAY, END = {"begin": None}, {"say": "Hello", "deltas": 2}, {"end": "completed"}


@contextmanager
def serving(
    directory: Path,
    scenario: Mapping[str, object],
    **options: Any,  # Any: whatever `connect` takes
) -> Generator[SyncAppServer]:
    command = fake_app_server.command(scenario, directory)
    with SyncAppServer.connect(command=command, cwd=str(directory), env=ENV, **options) as server:
        yield server


@contextmanager
def talking(
    directory: Path,
    *acts: Mapping[str, object],
    **options: Any,  # Any: whatever `connect` takes
) -> Generator[tuple[SyncAppServer, SyncThread]]:
    with serving(directory, {"on": {"turn/start": [list(acts)]}}, **options) as server:
        yield server, server.start_thread(cwd=directory)


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def test_the_same_classes_have_the_same_methods(tmp_path: Path) -> None:
    assert public(SyncAppServer) == public(AsyncAppServer)
    with talking(tmp_path, BEGIN, END) as (_, thread):
        assert public(SyncThread) == public(AsyncThread) | {"id", "path", "model"}
        assert thread.model == "fake"


def test_notifications_are_yielded_until_the_connection_ends(tmp_path: Path) -> None:
    news = [{"notify": "x/y", "params": {"n": 1}}, {"sleep": 0.05}] * 100
    with serving(tmp_path, {"on": {"model/list": [[{"answer": {}}, *news]]}}) as server:
        server.request("model/list")
        events = server.notifications()
        assert next(events) == UnknownEvent("x/y", {"n": 1})
        assert server.is_intelligible

    with pytest.raises(ConnectionClosed):
        list(events)


@pytest.mark.promise("F14")
@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt, GeneratorExit, KeyError])
def test_whatever_a_hook_raises_in_its_thread_is_a_refusal(
    end: type[BaseException], tmp_path: Path
) -> None:
    def hook(approval: Approval) -> ApprovalDecision:
        raise end

    with talking(tmp_path, BEGIN, {"approve": "command"}, END, approvals=hook) as (server, thread):
        answer = thread.ask("x")
        assert server.health().healthy

    assert (answer.status, decisions(tmp_path)) == ("completed", ["decline"])


def test_a_turn_is_streamed_and_asked_for(tmp_path: Path) -> None:
    with talking(tmp_path, BEGIN, SAY, END) as (server, thread):
        events = list(thread.run("hi", effort="low"))
        answer = thread.ask("again")
        assert server.health().healthy
        assert (server.version, server.state, thread.active_turn) == (
            "0.166.0",
            ConnectionState.CONNECTED,
            None,
        )

    deltas = [e.delta for e in events if isinstance(e, AgentMessageDeltaNotification)]
    assert "".join(deltas) == "Hello"
    assert isinstance(events[-1], TurnCompletedNotification)
    assert (answer.status, answer.text) == ("completed", "Hello")
    assert sent(tmp_path, "turn/start")[0]["params"]["effort"] == "low"


def test_threads_and_requests_by_plain_methods(tmp_path: Path) -> None:
    turn = {"id": "u", "status": "completed"}
    news = [
        {"notify": name, "params": {"threadId": "$thread", "turn": turn}}
        for name in ("turn/started", "turn/completed")
    ]
    scenario: Scenario = {
        "on": {
            "thread/name/set": [[{"answer": {}}]],
            "thread/fork": [[{"answer": {"thread": {"id": "fork"}}}]],
            "thread/unarchive": [[{"answer": {"thread": {"id": "fork"}}}]],
            "thread/compact/start": [[{"answer": {}}, *news]],
            "model/list": [[{"answer": {"data": [{"id": "m"}]}}]],
        }
    }
    with serving(tmp_path, scenario) as server:
        thread = server.start_thread(more=ThreadStartParams(sandbox="read-only"))
        thread.set_name("a name")
        resumed = server.resume_thread(thread.id, model="m")
        fork = server.fork_thread(thread.id)
        compacted = thread.compact()
        thread.archive()
        server.archive_thread(fork.id)
        server.unarchive_thread(fork.id)
        listed = server.list_threads(limit=3)
        models = server.models()
        answer = server.request("thread/loaded/list")

    assert (resumed.id, fork.id, compacted.status) == (thread.id, "fork", "completed")
    assert (listed.data, [model.id for model in models]) == ((), ["m"])
    assert answer == {"data": []}
    assert sent(tmp_path, "thread/start")[0]["params"] == {"sandbox": "read-only"}


@pytest.mark.parametrize("decision", [ApprovalDecision.ACCEPT, ApprovalDecision.DECLINE])
def test_a_plain_function_decides_approvals(decision: ApprovalDecision, tmp_path: Path) -> None:
    asked: list[Approval] = []

    def hook(approval: Approval) -> ApprovalDecision:
        asked.append(approval)
        return decision

    with talking(tmp_path, BEGIN, {"approve": "command"}, END, approvals=hook) as (_, thread):
        thread.ask("x")

    assert len(asked) == 1
    assert decisions(tmp_path) == [decision.value]


@pytest.mark.promise("F13")
def test_a_function_that_blocks_is_declined_at_the_deadline(tmp_path: Path) -> None:
    release = threading.Event()

    def hook(approval: Approval) -> ApprovalDecision:
        release.wait(60)
        return ApprovalDecision.ACCEPT

    try:
        with talking(
            tmp_path, BEGIN, {"approve": "command"}, END, approvals=hook, approval_timeout=0.2
        ) as (_, thread):
            answer = thread.ask("x")
            assert not release.is_set()
    finally:
        release.set()

    assert answer.status == "completed"
    assert decisions(tmp_path) == ["decline"]


def test_one_thread_interrupts_the_turn_of_another(tmp_path: Path) -> None:
    events: list[object] = []
    begun = threading.Event()

    def read(thread: SyncThread) -> None:
        for event in thread.run("x"):
            events.append(event)
            begun.set()

    with talking(tmp_path, BEGIN, SAY, {"sleep": 60}) as (_, thread):
        reader = threading.Thread(target=read, args=(thread,))
        reader.start()
        assert begun.wait(60)
        with pytest.raises(TurnInProgress):
            thread.ask("y")
        assert thread.interrupt()
        reader.join(60)

    assert isinstance(events[-1], TurnCompletedNotification)


def test_a_turn_that_was_left_can_be_followed(tmp_path: Path) -> None:
    with talking(tmp_path, BEGIN, SAY, {"until": "thread/list"}, SAY, END) as (server, thread):
        run = thread.run("x")
        next(run)
        run.close()
        rest: list[object] = []
        reader = threading.Thread(target=lambda: rest.extend(thread.follow()))
        reader.start()
        server.health()
        reader.join(60)

        assert thread.active_turn is None
    assert rest == [] or isinstance(rest[-1], TurnCompletedNotification)


@pytest.mark.promise("F1", "F2", "F7")
def test_failures_are_those_of_the_asynchronous_sdk(tmp_path: Path) -> None:
    with pytest.raises(CodexNotFound), SyncAppServer.connect(command=["/nowhere/codex"]):
        pass
    with serving(tmp_path, {"on": {"model/list": [[], [{"kill": None}]]}}) as server:
        thread = server.start_thread()
        with pytest.raises(RequestTimedOut):
            server.request("model/list", timeout=0.1)
        with pytest.raises(ConnectionLost):
            server.request("model/list")
        assert server.state is ConnectionState.CRASHED
        with pytest.raises(ConnectionLost):
            thread.ask("x")


def test_what_is_used_after_the_block_says_that_it_is_closed(tmp_path: Path) -> None:
    with talking(tmp_path, BEGIN, SAY, END) as (server, thread):
        run = thread.run("x")
        next(run)

    for use in (server.start_thread, lambda: thread.ask("x"), lambda: list(run)):
        with pytest.raises(ConnectionClosed):
            use()
    assert server.failure is not None


def test_what_the_block_raises_is_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError), talking(tmp_path, BEGIN, SAY, END):
        raise KeyError("of the program")
