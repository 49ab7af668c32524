"""A child goes the way that its order describes, and is held like every other."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.confine import Place, PlaceSpec, ProcessEntry, create, end
from holdfast.confine.failures import PlaceUnavailable
from holdfast.exec.failures import KeeperOutdated, StartFailed
from holdfast.exec.keeper.child import EntrySpec
from holdfast.exec.keeper.client_loop import KeeperClient, ProcessSpec, TerminalSize
from holdfast.exec.keeper.protocol import MalformedPacket, Message
from tests.exec.planes import PATH, closed, ended, keeping_in, output, retained, said

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc here"),
]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    project, draft = tmp_path / "project", tmp_path / "draft"
    project.mkdir()
    try:
        made = create(PlaceSpec(directory=str(draft), project=str(project)))
    except PlaceUnavailable as unavailable:
        pytest.skip(f"no place can be made here: {unavailable}")
    yield made
    made.close()
    end(draft)


def entering(
    place: Place, cwd: Path, script: str, *, key: str = "k", terminal: TerminalSize | None = None
) -> ProcessSpec:
    argv = ("sh", "-c", script)
    way = ProcessEntry(argv, {}, str(cwd), "/bin/sh", namespaces=place.namespaces)
    return ProcessSpec(
        key=key, argv=argv, cwd=str(cwd), env={"PATH": PATH}, terminal=terminal, way=way
    )


async def told_by(keeper: KeeperClient, state: Path, order: ProcessSpec) -> str:
    kept = await keeper.start(order)
    retention = await closed(retained(state, kept))
    told = output(retention).decode()
    retention.close()
    await kept.forget()
    return told


async def test_it_runs_in_the_place_with_what_it_was_given_and_nothing_else(
    tmp_path: Path, place: Place
) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    script = "pwd; id -u; echo draft >new; for fd in /proc/self/fd/*; do echo ${fd##*/}; done"
    async with keeping_in(state) as keeper:
        order = entering(place, project, script)
        told = (await told_by(keeper, state, order)).split()
        # The shell has a descriptor of the directory open while it looks for names.
        assert [each for each in told if each != "3"] == [str(project), "1000", "0", "1", "2"]
        assert not (project / "new").exists()
        assert (tmp_path / "draft" / "upper" / "new").read_text() == "draft\n"


async def test_it_has_a_terminal_of_its_own(tmp_path: Path, place: Place) -> None:
    state = tmp_path / "state"
    async with keeping_in(state) as keeper:
        order = entering(
            place, Path("/"), "stty size </dev/tty; exec sleep 60", terminal=TerminalSize(30, 90)
        )
        kept = await keeper.start(order)
        retention = retained(state, kept)
        await said(retention, b"30 90")
        master = kept.copy("pty")
        assert master is not None
        os.write(master, b"\x03")  # as if somebody pressed Ctrl-C
        os.close(master)
        assert await ended(kept) == 128 + signal.SIGINT
        retention.close()


async def test_its_group_is_signalled_and_its_end_is_told(tmp_path: Path, place: Place) -> None:
    state = tmp_path / "state"
    async with keeping_in(state) as keeper:
        kept = await keeper.start(entering(place, Path("/"), "sleep 60 & wait"))
        assert await kept.signal(signal.SIGTERM)
        assert await ended(kept) == 128 + signal.SIGTERM


async def test_a_place_ends_although_the_end_of_its_process_was_not_taken_note_of(
    tmp_path: Path, place: Place
) -> None:
    async with keeping_in(tmp_path / "state") as keeper:
        gone = await keeper.start(entering(place, Path("/"), "exit 3"))
        assert await ended(gone) == 3
        kept = await keeper.start(entering(place, Path("/"), "exec sleep 60", key="other"))
        end(tmp_path / "draft", patience=5.0)
        assert await ended(kept) == 128 + signal.SIGKILL
        assert not await gone.signal(signal.SIGTERM)
        assert sorted(each.key for each in await keeper.adopt()) == ["k", "other"]


async def test_what_cannot_start_is_named(tmp_path: Path, place: Place) -> None:
    async with keeping_in(tmp_path / "state") as keeper:
        good = entering(place, Path("/"), "true")
        assert good.way is not None
        missing = replace(good, way=replace(good.way, program="/does/not/exist"))
        for order, reason in (
            (missing, "no such file or directory"),
            (replace(good, cwd="/nowhere"), "/nowhere: no such file or directory"),
        ):
            with pytest.raises(StartFailed) as raised:
                await keeper.start(order)
            assert raised.value == StartFailed(command="sh", reason=reason)


async def test_a_script_without_a_first_line_is_run_by_the_shell(
    tmp_path: Path, place: Place
) -> None:
    state, script = tmp_path / "state", tmp_path / "script"
    script.write_text("echo from the script: $1")
    script.chmod(0o755)
    async with keeping_in(state) as keeper:
        way = ProcessEntry((), {}, "/", str(script), namespaces=place.namespaces)
        order = ProcessSpec(key="k", argv=("script", "x"), cwd="/", env={"PATH": PATH}, way=way)
        assert await told_by(keeper, state, order) == "from the script: x\n"


async def test_a_keeper_of_an_older_version_is_not_asked(tmp_path: Path, place: Place) -> None:
    async with keeping_in(tmp_path / "state") as keeper:
        keeper.version = 1
        with pytest.raises(KeeperOutdated):
            await keeper.start(entering(place, Path("/"), "true"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"namespaces": 0},
        {"groups": -1, "namespaces": 2},
        {"carried": [2]},
        {"carried": [5, 5]},
        {"filter": "?"},
        {"fence": {"files": 1, "network": 0, "scopes": 0, "paths": ["/"], "rights": []}},
    ],
)
def test_an_order_that_contradicts_itself_is_nonsense(wrong: Message) -> None:
    order: Message = {"program": "/bin/true", "namespaces": 1, "groups": 0, "carried": []}
    order |= {"limits": [], "fence": None, "filter": "", "shields": []}
    with pytest.raises(MalformedPacket):
        EntrySpec(order | wrong, [0] * (1 + len(wrong.get("carried", ()))))  # type: ignore[arg-type]  # lists, in these
