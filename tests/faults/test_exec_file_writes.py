"""What a client writes to a file is there whole or not at all, whatever happens to the server."""

from __future__ import annotations

import os
import random
from pathlib import Path

import anyio
import pytest

from holdfast.exec.client.files import WHOLE_BYTES_MAX
from holdfast.exec.file_uri import uri_of
from holdfast.world.failures import DiskFull
from tests.exec.server.methods.test_files import b64
from tests.exec.server.talking import introduced, served
from tests.faults.mounts import missing_for_mounts, mounted
from tests.faults.test_exec_chaos import client_of
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only, pytest.mark.promise("W7")]

OLD = b"old" * 3000
MISSING = missing_for_mounts()


@pytest.mark.skipif(MISSING is not None, reason=f"no disk can be filled: {MISSING}")
@pytest.mark.parametrize("size", [400_000, WHOLE_BYTES_MAX + 1], ids=["at once", "in blocks"])
async def test_a_full_disk_keeps_the_old_file_and_says_so(tmp_path: Path, size: int) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=256k", "tmpfs") as root:
        (root / "file").write_bytes(OLD)
        async with served(tmp_path / "s") as server, client_of(server.url) as client:
            for name in ("file", "new"):
                with pytest.raises(DiskFull):
                    await client.files.write(root / name, bytes(size))
            (tmp_path / "source").write_bytes(bytes(size))
            with pytest.raises(DiskFull):
                await client.files.copy(tmp_path / "source", root / "file")
            await client.files.metadata(root)  # after what was discarded in the background

            assert (root / "file").read_bytes() == OLD
            assert os.listdir(root) == ["file"]
            await client.files.write(root / "file", b"new")
            assert (root / "file").read_bytes() == b"new"


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.long)])
async def test_a_server_that_is_killed_leaves_the_old_file_or_a_new_one(
    tmp_path: Path, kills: int
) -> None:
    chance, place = random.Random(12), tmp_path / "place"
    place.mkdir()
    file = place / "file"
    file.write_bytes(filled(0))
    seen: set[int] = set()
    for _ in range(kills):
        async with served(tmp_path / "s", leave=True) as server:
            async with introduced(server.url) as talk:
                for number in range(1, 40):
                    written = {"dataBase64": b64(filled(number))}
                    await talk.ask("fs/writeFile", {"path": uri_of(os.fsencode(file)), **written})
                await anyio.sleep(chance.uniform(0, 0.5))
                await server.kill()
        content = file.read_bytes()
        assert content == filled(content[0])
        assert os.listdir(place) == ["file"]
        seen.add(content[0])
    assert len(seen) > 1  # they were killed while they wrote


def filled(number: int) -> bytes:
    return bytes([number]) * 2**20


async def test_a_large_write_that_is_cancelled_keeps_the_old_file(tmp_path: Path) -> None:
    file, new = tmp_path / "file", bytes(2 * WHOLE_BYTES_MAX)
    file.write_bytes(OLD)
    async with served(tmp_path / "s") as server, client_of(server.url) as client:
        with anyio.move_on_after(0.1) as patience:
            await client.files.write(file, new)
        await client.files.metadata(file)  # after what was discarded in the background
        content = file.read_bytes()

    assert content == (OLD if patience.cancelled_caught else new)


async def test_a_server_that_is_killed_within_a_write_in_blocks_leaves_the_old_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "file"
    file.write_bytes(OLD)
    async with served(tmp_path / "s") as server, introduced(server.url) as talk:
        await talk.call("fs/open", handleId="h", path=uri_of(os.fsencode(file)), mode="replace")
        await talk.call("fs/writeBlock", handleId="h", offset=0, chunk=b64(b"new"))
        await server.kill()

    assert file.read_bytes() == OLD
    assert sorted(os.listdir(tmp_path)) == ["file", "s"]
