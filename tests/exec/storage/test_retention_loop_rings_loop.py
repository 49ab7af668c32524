"""Who pours is kept in a ring whose position outlives the server; who cannot have one grows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.exec.keeper.client_loop import KeeperClient, KeptProcess
from holdfast.exec.model import Output
from holdfast.exec.output_index import read_header
from holdfast.exec.storage.retention_loop import RING_TASK, Retention
from holdfast.exec.storage.stream_file import EndRecord, ring_for
from tests.exec.planes import closed, keeping_in, news, output, shell, until
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

LIMIT = 16 * 2**20
SIZE = 48_000_000  # more than two turns of a ring


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file like no other, to be poured out."""
    path = tmp_path_factory.mktemp("noise") / "noise"
    path.write_bytes(os.urandom(SIZE))
    return path


def opened(state: Path, kept: KeptProcess, note: Callable[[], None] = lambda: None) -> Retention:
    end = EndRecord(lambda _status, _is_closed: None, note_rings=note)
    return Retention.open(state / kept.key, kept, bytes_max=LIMIT, end=end)


def rings(state: Path) -> tuple[int, int]:
    try:
        header = read_header((state / "k" / "index").read_bytes()[:32])
    except FileNotFoundError:
        return (0, 0)
    return (0, 0) if header is None else header.rings


def content(noise: Path) -> bytes:
    return noise.read_bytes()


async def begun(keeper: KeeperClient, noise: Path) -> KeptProcess:
    return await keeper.start(shell("k", f"cat {noise}"))


async def test_who_pours_is_kept_in_a_ring_that_is_noted_first(tmp_path: Path, noise: Path) -> None:
    noted: list[tuple[int, int]] = []
    async with keeping_in(tmp_path) as keeper:
        kept = await begun(keeper, noise)
        retention = opened(tmp_path, kept, lambda: noted.append(rings(tmp_path)))
        await closed(retention)

        assert content(noise).endswith(output(retention))
        assert (noted, rings(tmp_path)) == ([(0, 0)], (ring_for(LIMIT), 0))
        assert (tmp_path / "k" / "stdout").stat().st_size == ring_for(LIMIT)
        retention.close()
        left = Retention.open(tmp_path / "k", None, bytes_max=LIMIT)
        assert content(noise).endswith(output(left))
        left.close()


@pytest.mark.promise("X13")
async def test_the_next_server_goes_on_with_the_ring(tmp_path: Path, noise: Path) -> None:
    async with keeping_in(tmp_path) as keeper:
        expected, said, told = content(noise), 0, 0
        kept = await keeper.start(shell("k", f"cat {noise}; read _", pipe_stdin=True))
        for part in (0.0, 0.5, 0.8, 1.0):
            retention = opened(tmp_path, kept)
            retention.keep_from(told + 1)
            while said < part * SIZE or not rings(tmp_path)[0]:
                for event in retention.events(told, 2**20):
                    assert isinstance(event, Output) and event.seq == told + 1
                    assert expected[said : said + len(event.data)] == event.data
                    told, said = event.seq, said + len(event.data)
                retention.keep_from(told + 1)
                if said < SIZE and retention.next_seq == told + 1:
                    await news(retention)
            retention.close()
            kept.release()
            (kept,) = await keeper.adopt()
        assert said == SIZE


async def test_a_keeper_that_can_hold_nothing_leaves_the_file_growing(
    tmp_path: Path, noise: Path
) -> None:
    async with keeping_in(tmp_path) as keeper:
        keeper.version = 2
        kept = await begun(keeper, noise)
        retention = await closed(opened(tmp_path, kept))

        assert content(noise).endswith(output(retention))
        assert rings(tmp_path) == (0, 0)
        assert (tmp_path / "k" / "stdout").stat().st_size == SIZE
        retention.close()


async def test_a_disk_that_refuses_the_note_leaves_the_file_growing(
    tmp_path: Path, noise: Path
) -> None:
    def refuse() -> None:
        raise OSError(28, "full")

    async with keeping_in(tmp_path) as keeper:
        kept = await begun(keeper, noise)
        retention = await closed(opened(tmp_path, kept, refuse))

        assert content(noise).endswith(output(retention))
        assert rings(tmp_path) == (0, 0)
        retention.close()


async def test_a_reader_that_reads_nothing_stops_who_pours_into_a_ring(
    tmp_path: Path, noise: Path
) -> None:
    async with keeping_in(tmp_path) as keeper:
        kept = await begun(keeper, noise)
        retention = opened(tmp_path, kept)
        retention.keep_from(1)
        await until(lambda: retention.waits_for is not None)

        assert retention.first_retained == 1
        said = output(retention)
        assert content(noise).startswith(said)
        assert LIMIT < len(said) < ring_for(LIMIT)
        retention.keep_from(None)
        assert content(noise).endswith(output(await closed(retention)))
        retention.close()


async def test_what_is_closed_while_the_keeper_is_asked_leaves_nothing_open(
    tmp_path: Path, noise: Path
) -> None:
    async with keeping_in(tmp_path) as keeper:
        retention = opened(tmp_path, await begun(keeper, noise))
        while not any(task.get_name() == RING_TASK for task in asyncio.all_tasks()):
            await news(retention)
        retention.close()
        await until(lambda: not any(path.startswith(str(tmp_path / "k")) for path in open_files()))


def open_files() -> list[str]:
    found: list[str] = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(each))
    return found
