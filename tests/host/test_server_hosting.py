"""A host has its session alone, is reached by its own user only, and goes when nobody needs it."""

from __future__ import annotations

import stat
from pathlib import Path

import anyio
import pytest

from holdfast.host import read_session_journal
from holdfast.host import server as hosting
from holdfast.host.client import connect_host
from holdfast.host.model import CloseCommand, EventRecorded, PromptCommand, TurnClosed
from holdfast.host.server import HostConfig, run_host
from holdfast.runners.memory import MemoryRunner
from holdfast.runners.model import NoticeIssued, TextCompleted
from holdfast.world import background_tasks
from holdfast.world.failures import JournalHeld
from tests.host.staging import Bench, until

pytestmark = pytest.mark.anyio


def puppet() -> MemoryRunner:
    return MemoryRunner([[TextCompleted("1", "One")]])


def order_in(directory: Path) -> HostConfig:
    return HostConfig(
        session="s1",
        directory=directory,
        socket=directory / "host.sock",
        project="/p",
        draft="d1",
        runner="puppet",
    )


async def listening(order: HostConfig) -> None:
    with anyio.fail_after(20):
        while not await anyio.Path(order.socket).exists():  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.01)


async def test_a_session_is_led_over_its_socket_and_closed(tmp_path: Path) -> None:
    order, mode = order_in(tmp_path), 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_host, order, puppet(), Bench())
        await listening(order)
        mode = stat.S_IMODE(order.socket.stat().st_mode)
        async with connect_host(order.socket) as call:
            await call.command(PromptCommand("c1", "go"))
            await until(call, lambda each: isinstance(each, TurnClosed))
            await call.command(CloseCommand("c2"))

    assert mode == 0o600
    assert not order.socket.exists()


async def test_a_session_has_one_host(tmp_path: Path) -> None:
    order = order_in(tmp_path)
    async with background_tasks() as tasks:
        tasks.start_soon(run_host, order, puppet(), Bench())
        await listening(order)
        with pytest.raises(JournalHeld):
            await run_host(order, puppet(), Bench())


async def test_who_is_not_needed_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosting, "_LOOK_AGAIN", 0.05)
    monkeypatch.setattr(hosting, "IDLE_LONGEST", 0.1)
    with anyio.fail_after(20):
        await run_host(order_in(tmp_path), puppet(), Bench())


@pytest.mark.promise("A6")
async def test_a_session_whose_first_record_is_damaged_still_knows_which_it_is(
    tmp_path: Path,
) -> None:
    order, journal = order_in(tmp_path), tmp_path / "journal.jsonl"
    for attempt in (1, 2):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_host, order, puppet(), Bench())
            await listening(order)
            async with connect_host(order.socket) as call:
                standing = call.standing
                await call.command(CloseCommand(f"c{attempt}"))

        assert (standing.session, standing.draft, standing.attempt) == ("s1", "d1", attempt)
        journal.write_bytes(journal.read_bytes().replace(b'"opened"', b'"open\xffd"', 1))


@pytest.mark.promise("A6")
@pytest.mark.parametrize(("found", "put"), [(b"go", b"g\xff"), (b"", b"")], ids=["damaged", "torn"])
async def test_a_damaged_journal_is_reported_in_its_session(
    found: bytes, put: bytes, tmp_path: Path
) -> None:
    order, journal = order_in(tmp_path), tmp_path / "journal.jsonl"
    told: list[NoticeIssued] = []
    for attempt in (1, 2, 3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_host, order, puppet(), Bench())
            await listening(order)
            async with connect_host(order.socket) as call:
                if attempt == 1:
                    await call.command(PromptCommand("c1", "go"))
                    await until(call, lambda each: isinstance(each, TurnClosed))
                await call.command(CloseCommand(f"close-{attempt}"))
        if attempt == 1:
            whole = journal.read_bytes()
            journal.write_bytes(whole.replace(found, put, 1) if found else whole[:-9])
    for _, record in read_session_journal(journal):
        if isinstance(record, EventRecorded) and isinstance(record.event, NoticeIssued):
            told.append(record.event)

    if not found:
        assert told == []  # a record that was never finished is not lost
        return
    (once,) = told
    assert once.failure is not None
    assert once.failure["code"] == "HOST_JOURNAL_REPAIRED"
    details = once.failure["details"]
    assert isinstance(details, dict)
    aside = Path(str(details["set_aside"])).read_bytes()  # noqa: ASYNC240  # a few bytes
    assert aside == whole.replace(found, put, 1)
