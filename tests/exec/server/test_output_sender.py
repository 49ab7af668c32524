"""News: in order, each once, and never more of it in memory than a connection takes."""

from __future__ import annotations

import base64
import errno
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NoReturn

import anyio
import pytest

from holdfast.exec.output_index import Pieces, RecordDamaged, RecordRun
from holdfast.exec.server import output_sender as sender
from holdfast.exec.server.connection import ConnectionHandler
from holdfast.exec.server.scheduler import UNBOUNDED_BYTES_MAX
from holdfast.exec.storage.retention import OutputFiles
from holdfast.rpc.transports.memory import pair
from tests.exec.server.housing import housed
from tests.exec.server.talking import PATH, Json, Talk, until

pytestmark = pytest.mark.anyio

LIMIT = 2**20


def start(name: str, command: str) -> Json:
    argv = ["sh", "-c", command]
    params = {"processId": name, "argv": argv, "cwd": "file:///tmp", "env": PATH, "tty": False}
    return {"id": 7, "method": "process/start", "params": params}


async def test_many_printing_processes_started_at_once_all_arrive_whole(tmp_path: Path) -> None:
    expected = b"".join(b"%d\n" % n for n in range(1, 501))
    async with housed(tmp_path) as server, server.talk() as talk:
        asked = [
            await talk.ask("process/start", start(f"p{n}", "seq 1 500")["params"])
            for n in range(60)
        ]
        for number in asked:
            await talk.answer(number)
        for n in range(60):
            await talk.closed(f"p{n}")
        for n in range(60):
            numbers = [news["seq"] for news in talk.of(f"p{n}")]
            assert numbers == list(range(1, len(numbers) + 1))
            assert talk.output(f"p{n}") == expected


@pytest.mark.promise("X11")
async def test_a_client_that_reads_nothing_stops_the_process_and_loses_nothing(
    tmp_path: Path,
) -> None:
    size = 8 * LIMIT
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        ours, theirs = pair()
        server.tasks.start_soon(ConnectionHandler(99, theirs, server.shared).run)
        talk = Talk(ours)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.listen)
            await talk.introduce()
            tasks.cancel_scope.cancel()
        await talk.tell(start("p", f"head -c {size} /dev/zero; echo end"))
        held = -1
        while (now := _kept(tmp_path)) != held:  # until nothing moves any more
            held = now
            await anyio.sleep(0.3)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(talk.listen)
            await talk.closed("p")
            ours.cut()

    assert held < size / 2
    assert talk.output("p") == bytes(size) + b"end\n"
    numbers = [news["seq"] for news in talk.of("p")]
    assert numbers == list(range(1, len(numbers) + 1))


def _kept(state: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in state.glob("processes/*/stdout"))


@pytest.mark.parametrize("command", ["sleep 0.1; echo late", "head -c 5000000 /dev/zero"])
async def test_what_cannot_be_read_back_is_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def runs(*_: object, **__: object) -> NoReturn:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(OutputFiles, "runs", runs)
    with pytest.RaisesGroup(OSError, flatten_subgroups=True):
        async with housed(tmp_path) as server, server.talk() as talk:
            await talk.tell(start("p", command))
            await anyio.sleep_forever()


async def test_who_cannot_be_told_what_is_damaged_is_told_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = OutputFiles.runs

    def damaged(
        self: OutputFiles, after_seq: int, bytes_max: int | None, count_max: int, memory: memoryview
    ) -> Iterator[tuple[RecordRun, Pieces]]:
        if after_seq < 1:
            raise RecordDamaged(1)
        return read(self, after_seq, bytes_max, count_max, memory)

    monkeypatch.setattr(OutputFiles, "runs", damaged)
    async with housed(tmp_path) as server, server.talk() as talk:
        await talk.start("p", "echo", "lost")
        await talk.closed("p")
        page = await talk.call("process/read", processId="p")

    assert [news["seq"] for news in talk.of("p")][-1] == 3
    assert (talk.output("p"), page["failure"]) == (b"", str(RecordDamaged(1)))


async def test_who_came_back_is_told_nothing_before_it_has_caught_up(tmp_path: Path) -> None:
    command = "echo one; read x; echo two; read x; echo three"
    async with housed(tmp_path) as server:
        async with server.talk() as first:
            await first.start("p", "sh", "-c", command, pipeStdin=True)
            await first.until(lambda: bool(first.output("p")))
        async with server.talk(session=first.session) as second:
            await second.call("process/write", processId="p", chunk="Cg==", writeId="1")
            page = await second.call("process/read", processId="p", afterSeq=1, waitMs=9000)
            assert second.of("p") == []
            await second.call("process/write", processId="p", chunk="Cg==", writeId="2")
            await second.closed("p")

    told = [base64.b64decode(chunk["chunk"]) for chunk in page["chunks"]]
    assert told == [b"two\n"]
    assert second.output("p") == b"three\n"


async def test_more_than_an_answer_may_carry_follows_as_news(tmp_path: Path) -> None:
    size = UNBOUNDED_BYTES_MAX + 2**20
    async with housed(tmp_path) as server:
        async with server.talk() as first:
            await first.start("p", "sh", "-c", f"read x; head -c {size} /dev/zero", pipeStdin=True)
        async with server.talk(session=first.session) as second:
            await second.call("process/write", processId="p", chunk="Cg==", writeId="1")
            await until(lambda: _kept(tmp_path) >= size)
            page = await second.call("process/read", processId="p")
            await second.closed("p")

    carried = sum(len(base64.b64decode(chunk["chunk"])) for chunk in page["chunks"])
    assert (page["exited"], page["closed"]) == (False, False)
    assert second.of("p")[0]["seq"] == page["nextSeq"]
    assert carried + len(second.output("p")) == size


async def test_who_does_not_ask_is_told_from_where_it_came_back(tmp_path: Path) -> None:
    async with housed(tmp_path) as server:
        async with server.talk() as first:
            await first.start("p", "sh", "-c", "echo one; read x; echo two", pipeStdin=True)
            await first.until(lambda: bool(first.output("p")))
        async with server.talk(session=first.session) as second:
            await second.call("process/write", processId="p", chunk="Cg==", writeId="1")
            await second.closed("p")

    assert second.output("p") == b"two\n"


async def test_who_pages_is_told_the_rest_only_after_the_last_page(tmp_path: Path) -> None:
    async with housed(tmp_path) as server:
        async with server.talk() as first:
            await first.start(
                "p",
                "sh",
                "-c",
                "for i in 1 2 3 4; do echo $i; sleep 0.05; done; cat",
                pipeStdin=True,
            )
            await first.until(lambda: first.output("p") == b"1\n2\n3\n4\n")
        async with server.talk(session=first.session) as second:
            seen, after = b"", 0
            while after < 4:
                page = await second.call("process/read", processId="p", afterSeq=after, maxBytes=1)
                seen += b"".join(base64.b64decode(each["chunk"]) for each in page["chunks"])
                after = page["nextSeq"] - 1
            await second.call("process/closeStdin", processId="p")
            await second.closed("p")

    assert seen == b"1\n2\n3\n4\n"
    assert [news["seq"] for news in second.of("p")] == [5, 6]


async def test_names_of_any_kind_are_told_as_they_are(tmp_path: Path) -> None:
    name = 'quote" back\\ new\nline é \u2028'
    async with housed(tmp_path) as server, server.talk() as talk:
        ran = await talk.run(name, "echo", "hi")

    assert ran == (0, b"hi\n")
    assert json.dumps(name) in json.dumps(talk.news)


@pytest.mark.promise("X11")
async def test_who_says_what_it_holds_is_told_no_more_until_it_takes_some(tmp_path: Path) -> None:
    size, holds = 4 * LIMIT, LIMIT // 4
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with server.talk(introduced=False) as talk:
            await talk.introduce(unreadBytesMax=holds)
            await talk.start("p", "sh", "-c", f"head -c {size} /dev/zero; echo end")
            await talk.start("q", "sh", "-c", "echo not in the way")
            await talk.closed("q")
            told = 0
            while not talk.is_closed("p"):
                await _quiet(talk, 0.05)
                assert _kept(tmp_path) <= 2 * LIMIT, "it waits"
                assert len(talk.output("p")) - told <= holds + 2**16
                told = len(talk.output("p"))
                await talk.tell(_taken(talk, "p"))

    assert talk.output("p") == bytes(size) + b"end\n"


async def test_who_takes_nothing_is_still_told_of_the_exit(tmp_path: Path) -> None:
    async with housed(tmp_path) as server, server.talk(introduced=False) as talk:
        await talk.introduce(unreadBytesMax=1000)
        await talk.start("p", "sh", "-c", "head -c 500000 /dev/zero; exit 5")
        await talk.until(lambda: any("exitCode" in news for news in talk.of("p")))
        assert (len(talk.output("p")) < 500_000, talk.is_closed("p")) == (True, False)

        while not talk.is_closed("p"):
            await talk.tell(_taken(talk, "p"))
            await _quiet(talk, 0.05)

    assert talk.output("p") == bytes(500_000)


async def test_what_was_not_taken_is_kept_for_who_comes_back(tmp_path: Path) -> None:
    size = 8 * LIMIT
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with server.talk(introduced=False) as first:
            await first.introduce(unreadBytesMax=1000)
            await first.start("p", "sh", "-c", f"head -c {size} /dev/zero")
            await until(lambda: _kept(tmp_path) > LIMIT)
        await anyio.sleep(0.5)  # while nobody is there, too
        async with server.talk(introduced=False) as second:
            await second.introduce(first.session, unreadBytesMax=1000)
            page = await second.call("process/read", processId="p", afterSeq=0, maxBytes=1)
            assert (page["firstRetainedSeq"], page["chunks"][0]["seq"]) == (1, 1)
            while not second.is_closed("p"):
                await second.tell(_taken(second, "p", after=1))
                await _quiet(second, 0.02)

    first_chunk = len(base64.b64decode(page["chunks"][0]["chunk"]))
    assert first_chunk + len(second.output("p", after=1)) == size


@pytest.mark.promise("X13")
async def test_one_for_whom_nobody_comes_back_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "COME_BACK_LONGEST", 0.2)
    go, gone = tmp_path / "go", tmp_path / "gone"
    command = f"until [ -e {go} ]; do sleep 0.1; done; head -c {8 * LIMIT} /dev/zero; echo >{gone}"
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with server.talk(introduced=False) as talk:
            await talk.introduce(None, unreadBytesMax=1000)
            await talk.start("p", "sh", "-c", command)
            (process,) = [each for session in server.shared.sessions for each in session.processes]
            await until(lambda: process.needs_nothing)
        go.touch()
        await until(gone.exists)


async def test_what_was_not_taken_is_kept_by_the_next_server_too(tmp_path: Path) -> None:
    size = 4 * LIMIT
    async with housed(tmp_path, retention_bytes_max=LIMIT, leave=True) as server:
        async with server.talk(introduced=False) as first:
            await first.introduce(unreadBytesMax=1000)
            await first.start("p", "sh", "-c", f"head -c {size} /dev/zero")
            await until(lambda: _kept(tmp_path) > LIMIT)
            await _quiet(first, 0.2)
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        await anyio.sleep(0.3)
        async with server.talk(introduced=False) as second:
            await second.introduce(first.session, unreadBytesMax=1000)
            page = await second.call("process/read", processId="p", afterSeq=0, maxBytes=1)
            assert (page["firstRetainedSeq"], page["chunks"][0]["seq"]) == (1, 1)
            while not second.is_closed("p"):
                await second.tell(_taken(second, "p", after=1))
                await _quiet(second, 0.02)

    first_chunk = len(base64.b64decode(page["chunks"][0]["chunk"]))
    assert first_chunk + len(second.output("p", after=1)) == size


async def test_what_was_dropped_is_told_by_the_number_after_it(tmp_path: Path) -> None:
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with server.talk() as first:
            command = f"read x; head -c {8 * LIMIT} /dev/zero"
            await first.start("p", "sh", "-c", command, pipeStdin=True)
            await first.call("process/write", processId="p", chunk="Cg==", writeId="1")
        async with server.talk(session=first.session) as second:
            await second.closed("p")
            page = await second.call("process/read", processId="p", afterSeq=0)

    first = page["firstRetainedSeq"]
    assert first > 1
    assert page["chunks"][0]["seq"] in (first, first + 1)  # the first may be the exit


async def test_a_client_that_follows_one_process_of_two_does_not_stop_the_other(
    tmp_path: Path,
) -> None:
    size = 8 * LIMIT
    async with housed(tmp_path, retention_bytes_max=LIMIT) as server:
        async with server.talk() as first:
            command = f"read x; head -c {size} /dev/zero"
            await first.start("p", "sh", "-c", command, pipeStdin=True)
        async with server.talk(introduced=False) as second:
            await second.introduce(first.session, unreadBytesMax=1000)
            await second.call("process/write", processId="p", chunk="Cg==", writeId="1")
            await second.closed("p")


def _taken(talk: Talk, name: str, *, after: int = 0) -> Json:
    """That the client has taken all that it knows without a hole."""
    known = {news["seq"] for news in talk.of(name)}
    seq = next(seq for seq in count(after) if seq + 1 not in known)
    return {"method": "process/taken", "params": {"processId": name, "seq": seq}}


async def _quiet(talk: Talk, pause: float) -> None:
    """Wait until nothing is told for a while."""
    heard = -1
    while heard != len(talk.news):
        heard = len(talk.news)
        await anyio.sleep(pause)
