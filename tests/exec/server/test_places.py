"""Sessions are bound to a place by their token, for ever, and see nothing of other places."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from holdfast.confine import end, find
from holdfast.exec.server.places import Bindings
from holdfast.rpc import token_digest
from holdfast.world import SystemDisk
from tests.confine.workshop import fingerprint
from tests.exec.server.drafts import Draft, drafted
from tests.exec.server.housing import Housed, housed
from tests.exec.server.talking import PATH, Refused, Talk, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such views"),
]


@pytest.fixture
def draft(tmp_path: Path) -> Iterator[Draft]:
    with drafted(tmp_path) as draft:
        yield draft


@asynccontextmanager
async def bound(draft: Draft, *, leave: bool = False) -> AsyncGenerator[tuple[Housed, Talk]]:
    async with housed(draft.state, leave=leave) as server:
        async with server.talk(place=draft.name) as talk:
            yield server, talk


def mounted() -> str:
    return Path("/proc/self/mountinfo").read_text()


async def refused(talk: Talk, method: str, **params: object) -> str:
    with pytest.raises(Refused) as raised:
        await talk.call(method, **params)
    return raised.value.failure


async def test_what_a_bound_session_does_is_done_in_its_place(draft: Draft) -> None:
    async with bound(draft) as (server, talk):
        script = "pwd; cat old; echo draft >new; rm old; ls"
        status, said = await talk.run("p", "sh", "-c", script, cwd=draft.uri())
        content = await talk.call("fs/readFile", path=draft.uri("new"))
        await talk.call("fs/writeFile", path=draft.uri("other"), dataBase64="eA==")
        await talk.call("fs/createDirectory", path=draft.uri("below/deep"))
        await talk.call(
            "fs/copy",
            sourcePath=draft.uri("new"),
            destinationPath=draft.uri("below/copy"),
            recursive=False,
        )
        await talk.call("fs/open", handleId="h", path=draft.uri("new"))
        block = await talk.call("fs/readBlock", handleId="h", offset=0, len=10)
        gone = await refused(talk, "fs/getMetadata", path=draft.uri("old"))
        async with server.talk() as other:
            plain = await other.call("fs/readFile", path=draft.uri("old"))

    assert (status, said.decode()) == (0, f"{draft.project}\npublishednew\n")
    assert content == {"dataBase64": "ZHJhZnQK"}
    assert block == {"chunk": "ZHJhZnQK", "eof": True}
    assert gone == "EXEC_FILE_MISSING"
    assert plain == {"dataBase64": "cHVibGlzaGVk"}
    assert (draft.upper / "new").read_text() == "draft\n"
    assert (draft.upper / "below" / "copy").read_text() == "draft\n"


async def test_no_operator_and_no_other_session_is_reached_from_a_place(draft: Draft) -> None:
    async with bound(draft) as (server, talk), server.talk() as plain:
        unknown = [
            await refused(talk, "operator/list"),
            await refused(talk, "place/bind", directory=draft.name),
            await refused(talk, "place/unbind", directory=draft.name),
        ]
        async with server.talk(introduced=False, place=draft.name) as stranger:
            hidden = await refused(
                stranger, "initialize", clientName="x", resumeSessionId=plain.session
            )
        async with server.talk(introduced=False) as stranger:
            other_way = await refused(
                stranger, "initialize", clientName="x", resumeSessionId=talk.session
            )
        assert (await plain.call("operator/list"))["processes"] == []

    assert unknown == ["RPC_METHOD_UNKNOWN"] * 3
    assert (hidden, other_way) == ("EXEC_SESSION_EXPIRED", "EXEC_SESSION_EXPIRED")


async def test_a_place_that_is_lost_says_so_until_it_is_held_again(draft: Draft) -> None:
    async with bound(draft) as (server, talk):
        await talk.start("p", "sh", "-c", "echo kept >new; exec sleep 60", cwd=draft.uri())
        await until((draft.upper / "new").exists)
        await talk.call("fs/open", handleId="h", path=draft.uri("old"))
        end(draft.name)
        await talk.until(lambda: talk.ended)
        async with server.talk(place=draft.name, session=talk.session) as again:
            page = await again.call("process/read", processId="p", waitMs=5000)
            lost = [
                await refused(again, "fs/readFile", path=draft.uri("old")),
                await refused(
                    again,
                    "process/start",
                    processId="q",
                    argv=["true"],
                    env={},
                    cwd=draft.uri(),
                    tty=False,
                ),
            ]
            mounts = mounted()
            draft.hold(draft.state).close()
            status, said = await again.run("r", "cat", "new", cwd=draft.uri())

    assert (page["exited"], page["exitCode"]) == (True, 137)
    assert lost == ["PLACE_LOST", "PLACE_LOST"]
    assert str(draft.project) not in mounts
    assert (status, said) == (0, b"kept\n")


async def test_nothing_is_done_in_a_place_that_no_longer_covers(draft: Draft) -> None:
    """The kernel takes a layer off what is removed: who enters then would be in the project."""
    async with bound(draft) as (_, talk):
        assert (await talk.run("p", "cat", "old", cwd=draft.uri()))[1] == b"published"
        draft.project.rename(draft.project.with_name("away"))
        shutil.copytree(draft.project.with_name("away"), draft.project)
        shutil.rmtree(draft.project.with_name("away"))
        before = fingerprint(draft.project)
        try:
            failures = [
                await refused(talk, "fs/writeFile", path=draft.uri("old"), dataBase64="eA=="),
                await refused(
                    talk,
                    "process/start",
                    processId="q",
                    argv=["sh", "-c", "echo bad >old"],
                    env=PATH,
                    cwd=draft.uri(),
                    tty=False,
                ),
            ]
        finally:
            after = fingerprint(draft.project)

    assert failures == ["PLACE_UNCOVERED", "PLACE_UNCOVERED"]
    assert after == before


async def test_another_server_goes_on_with_the_sessions_of_a_place(draft: Draft) -> None:
    async with bound(draft, leave=True) as (_, talk):
        script = "read line; echo $line >new; cat new"
        await talk.start("p", "sh", "-c", script, cwd=draft.uri(), pipeStdin=True)
    async with housed(draft.state) as server:
        async with server.talk(place=draft.name, session=talk.session) as again:
            await again.call("process/write", processId="p", chunk="eAo=", writeId="1")
            page = await again.call("process/read", processId="p", waitMs=5000)

    assert [chunk["chunk"] for chunk in page["chunks"]] == ["eAo="]
    assert (draft.upper / "new").read_text() == "x\n"


async def test_a_place_that_shows_the_server_is_refused(draft: Draft) -> None:
    end(draft.name)
    draft.hold().close()
    async with housed(draft.state) as server, server.talk() as talk:
        assert await refused(talk, "place/bind", directory=draft.name) == "EXEC_PLACE_EXPOSED"
        async with server.talk(place=draft.name) as inside:
            assert await refused(inside, "fs/readFile", path=draft.uri("old")) == (
                "EXEC_PLACE_EXPOSED"
            )


async def test_an_operator_binds_and_unbinds(draft: Draft) -> None:
    async with housed(draft.state) as server, server.talk() as talk:
        assert server.shared.bindings is not None
        token = (await talk.call("place/bind", directory=draft.name))["token"]
        assert server.shared.bindings.guests == {token_digest(token): draft.name}
        kept = draft.state / "bindings"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert token not in kept.read_text()
        again = Bindings(draft.state, SystemDisk())
        assert again.guests == server.shared.bindings.guests

        async with server.talk(place=draft.name) as guest:
            await talk.call("place/unbind", directory=draft.name)
            await guest.until(lambda: guest.ended)
        assert server.shared.bindings.guests == {}
        assert json.loads(kept.read_text())["places"] == {}
        end(draft.name)
        assert await refused(talk, "place/bind", directory=draft.name) == "PLACE_LOST"


async def test_who_came_with_a_token_and_said_nothing_yet_is_put_out_with_it(draft: Draft) -> None:
    async with housed(draft.state) as server, server.talk() as talk:
        await talk.call("place/bind", directory=draft.name)
        async with server.talk(place=draft.name, introduced=False) as guest:
            await talk.call("place/unbind", directory=draft.name)
            await guest.until(lambda: guest.ended)
        assert await talk.call("environment/status") == {"status": "ready"}


async def test_tokens_that_are_made_at_once_all_count(draft: Draft) -> None:
    async with housed(draft.state) as server, server.talk() as talk:
        assert server.shared.bindings is not None
        asked = [await talk.ask("place/bind", {"directory": draft.name}) for _ in range(8)]
        tokens = [(await talk.answer(each))["token"] for each in asked]

        assert server.shared.bindings.guests.keys() == {token_digest(each) for each in tokens}


@pytest.mark.parametrize("damaged", [b"{", b'{"places":{"00":"\xff"}}', b'{"places":{"0g":"/"}}'])
async def test_what_was_spoiled_leads_nowhere(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / "bindings").write_bytes(damaged)

    assert Bindings(tmp_path, SystemDisk()).guests == {}


async def test_nothing_of_a_place_stays_open(draft: Draft) -> None:
    async with housed(draft.state) as server:
        before = len(os.listdir("/proc/self/fd"))
        async with server.talk(place=draft.name) as talk:
            await talk.run("p", "true", cwd=draft.uri())
            end(draft.name)
            assert find(draft.name) is None
            await talk.until(lambda: talk.ended)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= before + 4)  # what p had said


async def test_a_place_that_nobody_waits_for_any_more_is_not_held(draft: Draft) -> None:
    async with housed(draft.state) as server:
        site = server.shared.sessions.site(draft.name)
        before = sorted(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with anyio.CancelScope() as scope:
                scope.cancel()
                async with site.reached():
                    pass
        for lane in range(4):  # whatever is still being done
            await server.shared.workers.do(lambda: None, lane=lane)
        site.close()
        assert sorted(os.listdir("/proc/self/fd")) == before
