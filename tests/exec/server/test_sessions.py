"""Sessions: resumed, taken over, forgotten in time, and adopted after a death."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import anyio
import pytest

from holdfast.exec.server.ownership import SessionPolicy
from holdfast.world.failures import DiskUnusable
from tests.exec.server.housing import housed
from tests.exec.server.talking import Refused, Talk, is_alive, names, until

pytestmark = pytest.mark.anyio

TICKS = "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.02; done"
TICKED = b"".join(b"%d\n" % n for n in range(40))


async def page(talk: Talk, name: str, after: int) -> tuple[bytes, int]:
    """What a read yields, as a client that comes back uses it."""
    found = await talk.call("process/read", processId=name, afterSeq=after, waitMs=0)
    return b"".join(base64.b64decode(c["chunk"]) for c in found["chunks"]), found["nextSeq"]


async def forgotten(talk: Talk) -> None:
    """Wait until the session has no process any more."""
    with anyio.fail_after(60):
        while (await talk.call("process/list"))["processes"]:  # noqa: ASYNC110  # it must be asked
            await anyio.sleep(0.05)


async def test_a_session_outlives_its_connection(tmp_path: Path) -> None:
    async with housed(tmp_path) as server:
        async with server.talk() as first:
            await first.start("p", "sh", "-c", TICKS)
            await first.until(lambda: len(first.output("p")) > 10)
        last = first.last("p")
        async with server.talk(session=first.session) as second:
            missed, next_seq = await page(second, "p", last)
            await second.closed("p")

    assert second.session == first.session
    assert min(n["seq"] for n in second.of("p")) == next_seq  # no number twice, none left out
    assert first.output("p") + missed + second.output("p") == TICKED


@pytest.mark.promise("X9")
async def test_a_resume_takes_the_session_from_a_connection_that_may_be_dead(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as server, server.talk() as first:
        await first.start("p", "sleep", "60")
        async with server.talk(session=first.session) as second:
            await first.until(lambda: first.ended)
            listed = await second.call("process/list")
        async with server.talk(session=first.session) as third:  # the first detached nobody
            assert await third.call("process/terminate", processId="p") == {"running": True}

    assert [p["processId"] for p in listed["processes"]] == ["p"]


@pytest.mark.promise("X9")
async def test_without_takeover_a_resume_is_refused_while_the_session_is_held(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, SessionPolicy(takeover=False)) as server:
        async with server.talk() as first, server.talk(introduced=False) as second:
            with pytest.raises(Refused) as refused:
                await second.introduce(first.session)
            await first.call("environment/status")
            first.transport.cut()  # type: ignore[attr-defined]
            await first.until(lambda: first.ended)
            with anyio.fail_after(60):
                while second.session != first.session:  # it may be tried again on the same line
                    try:
                        await second.introduce(first.session)
                    except Refused as still:
                        assert still.code == -32010

    assert refused.value.code == -32010
    assert refused.value.failure == "EXEC_SESSION_ATTACHED"
    assert refused.value.text.endswith("is already attached to another connection")


@pytest.mark.long
async def test_a_session_is_forgotten_although_nobody_heard_of_it(tmp_path: Path) -> None:
    async with housed(tmp_path, SessionPolicy(detached_ttl=0.1)) as server:
        for wait in range(20):
            ours = await server.dial()
            await ours.send([b'{"id":1,"method":"initialize","params":{"clientName":"short"}}'])
            await anyio.sleep(wait / 5000)
            ours.cut()
        await until(lambda: names(tmp_path / "sessions") == [])


async def test_a_session_that_the_disk_does_not_let_go_of_ends_all_the_same(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, SessionPolicy(detached_ttl=0.1)) as server:
        async with server.talk() as first:
            await first.start("p", "sleep", "60")
            (listed,) = (await first.call("process/list"))["processes"]
            kept = tmp_path / "sessions" / first.session
            kept.unlink()
            kept.mkdir()
        await until(lambda: not is_alive(listed["pid"]))
        async with server.talk() as second:
            assert (await second.call("process/list"))["processes"] == []


async def test_a_process_whose_files_cannot_be_used_is_named_and_ends_nobody(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, leave=True) as server, server.talk() as talk:
        await talk.start("p", "sh", "-c", "echo word; exec sleep 60")
        await talk.until(lambda: talk.output("p") == b"word\n")
        (listed,) = (await talk.call("process/list"))["processes"]
        session = talk.session
    (directory,) = (tmp_path / "processes").iterdir()
    index = directory / "index"
    index.rename(directory / "aside")
    index.mkdir()
    with pytest.raises(DiskUnusable, match=directory.name):
        async with housed(tmp_path, leave=True):
            raise AssertionError("it is not ready")
    assert is_alive(listed["pid"])
    index.rmdir()
    (directory / "aside").rename(index)

    async with housed(tmp_path) as server, server.talk(session=session) as talk:
        assert (await talk.call("process/list"))["processes"] == [listed]


@pytest.mark.promise("X9")
async def test_a_session_that_nobody_comes_back_for_ends_with_its_processes(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, SessionPolicy(detached_ttl=0.5)) as server:
        async with server.talk() as first:
            await first.start("p", "sleep", "60")
            (listed,) = (await first.call("process/list"))["processes"]
            await anyio.sleep(0.8)  # attached, it is kept for ever
            assert is_alive(listed["pid"])
        await until(lambda: not is_alive(listed["pid"]))
        async with server.talk(introduced=False) as second:
            with pytest.raises(Refused) as refused:
                await second.introduce(first.session)
        await until(lambda: not names(tmp_path / "sessions") + names(tmp_path / "processes"))

    assert (refused.value.code, refused.value.failure) == (-32600, "EXEC_SESSION_EXPIRED")


async def test_a_closed_process_stays_readable_for_a_while_then_its_name_is_free(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, SessionPolicy(detached_ttl=0.5)) as server, server.talk() as talk:
        await talk.run("p", "echo", "hi")
        assert (await page(talk, "p", 0))[0] == b"hi\n"
        await forgotten(talk)
        await talk.start("p", "true")


async def test_what_a_process_left_running_behind_it_lives_on(tmp_path: Path) -> None:
    async with housed(tmp_path, SessionPolicy(detached_ttl=0.3)) as server, server.talk() as talk:
        await talk.run("p", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
        pid = int(talk.output("p"))
        await forgotten(talk)
        alive = is_alive(pid)
        os.kill(pid, 9)

    assert alive


@pytest.mark.promise("X13")
async def test_the_next_server_adopts_processes_and_sessions(tmp_path: Path) -> None:
    async with housed(tmp_path, leave=True) as server, server.talk() as first:
        await first.run("done", "sh", "-c", "echo done; exit 7")
        await first.start("p", "sh", "-c", TICKS + "; cat", pipeStdin=True)
        await first.until(lambda: len(first.output("p")) > 10)
        await first.call("process/write", processId="p", chunk="aGkK", writeId="w")
    async with housed(tmp_path) as server, server.talk(session=first.session) as second:
        missed, _ = await page(second, "p", first.last("p"))
        again = await second.call("process/write", processId="p", chunk="aGkK", writeId="w")
        await second.call("process/closeStdin", processId="p")
        await second.closed("p")
        found = await second.call("process/read", processId="done")

    assert first.output("p") + missed + second.output("p") == TICKED + b"hi\n"
    assert again == {"status": "accepted"}
    assert (found["exitCode"], found["closed"], len(found["chunks"])) == (7, True, 1)


@pytest.mark.promise("X13")
async def test_what_was_told_of_one_that_said_nothing_stays_true(tmp_path: Path) -> None:
    """Its exit was told; what it left behind speaks while no server is there to hear it."""
    late = "sh -c 'read x <\"$0\"; echo late; : >said' fifo & exit 3"
    async with housed(tmp_path, leave=True) as server, server.talk() as first:
        os.mkfifo(tmp_path / "fifo")
        await first.run("silent", "sh", "-c", "exit 7")
        await first.start("p", "sh", "-c", late, cwd=tmp_path.as_uri())
        await first.until(lambda: bool(first.of("p")))
        left = names(tmp_path / "processes")
    (tmp_path / "fifo").write_bytes(b"go\n")
    await until((tmp_path / "said").exists)
    async with housed(tmp_path) as server, server.talk(session=first.session) as second:
        while not (await second.call("process/read", processId="p"))["closed"]:  # noqa: ASYNC110  # it must be asked
            await anyio.sleep(0.01)
        found = [
            await second.call("process/read", processId=name, maxBytes=9)
            for name in ("silent", "p")
        ]

    assert left == []
    assert [(news["seq"], news["exitCode"]) for news in first.of("p")] == [(1, 3)]
    assert [
        (page["exitCode"], page["closed"], [chunk["seq"] for chunk in page["chunks"]])
        for page in found
    ] == [(7, True, []), (3, True, [2])]


def _files(state: Path) -> set[str]:
    return {path.name for path in state.glob("processes/*/*")}


async def test_one_that_lives_for_a_while_finds_its_files_made(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.run("short", "true")
        await talk.start("long", "sh", "-c", "read x; echo word", pipeStdin=True)
        await until(lambda: _files(tmp_path) == {"writes", "index", "stdout"})
        await talk.call("process/write", processId="long", chunk="Cg==", writeId="1")
        await talk.closed("long")

    assert talk.output("long") == b"word\n"


async def test_a_lost_keeper_is_told_to_every_process(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sleep", "60")
        (listed,) = (await talk.call("process/list"))["processes"]
        os.kill(server.services.keeper.pid, 9)
        await server.services.keeper.wait_lost()
        server.shared.sessions.mark_lost()
        await talk.closed("p")
        found = await talk.call("process/read", processId="p")
        await until(lambda: not is_alive(listed["pid"]))
        (after,) = (await talk.call("process/list"))["processes"]

    (exited,) = (each for each in talk.of("p") if "exitCode" in each)
    assert "keeper" in found["failure"]
    assert [each["lost"] for each in (exited, found, after)] == [True] * 3
    assert [each["exitCode"] for each in (exited, found, after)] == [137] * 3


@pytest.mark.promise("X13")
async def test_a_process_that_was_killed_is_not_called_lost(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "sleep", "60")
        await talk.call("process/terminate", processId="p")
        await talk.closed("p")
        (listed,) = (await talk.call("process/list"))["processes"]

    (exited,) = (each for each in talk.of("p") if "exitCode" in each)
    assert exited == {"processId": "p", "seq": 1, "exitCode": 137, "sandboxDenied": False}
    assert (listed["exitCode"], listed["lost"]) == (137, False)
