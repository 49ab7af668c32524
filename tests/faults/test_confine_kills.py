"""Kill holder, keeper and server at any moment: nothing that was shut in or mounted is left."""

from __future__ import annotations

import os
import random
import signal
import tempfile
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import anyio
import pytest

from holdfast.confine import PlaceSpec, create, end, find, places, strength_within
from holdfast.confine.failures import PlaceHeld, PlaceLost, PlaceUnavailable
from holdfast.exec import operating
from holdfast.exec.keeper.protocol import LOCK_NAME, KeeperName
from holdfast.failures import Failure
from holdfast.rpc import connect_websocket
from tests.exec.server.talking import Refused, Served, Talk, served, talking, until
from tests.exec.server.test_launcher import workspace_write
from tests.journeys.stage import linux_only

pytestmark = [pytest.mark.anyio, linux_only]

ROUNDS, ROUNDS_LONG = 12, 100
_TRIES_MAX = 100
SCRIPT = "echo x >file; setsid sleep 300 & (sleep 300 &) ; exec sleep 300"


@dataclass
class Scene:
    """A draft of one project, another project beside it, and a server that knows both."""

    base: Path
    tag: str = field(default_factory=lambda: f"tag-{uuid4().hex}")

    @property
    def draft(self) -> str:
        return str(self.base / "draft")

    @property
    def state(self) -> Path:
        return self.base / "state"

    def project(self, name: str) -> Path:
        return self.base / name

    def hold(self) -> None:
        """Have the place held; it may be."""
        spec = PlaceSpec(
            directory=self.draft,
            project=str(self.project("drafted")),
            hidden=(str(self.state),),
        )
        with suppress(PlaceHeld, PlaceLost):
            create(spec).close()

    def kill(self, victim: str, server: Served) -> None:
        with suppress(ProcessLookupError):
            match victim:
                case "server":
                    server.process.kill()
                case "keeper":
                    name = KeeperName.parse((self.state / LOCK_NAME).read_text())
                    if name is not None:
                        os.kill(name.pid, signal.SIGKILL)
                case _:
                    place = find(self.draft)
                    if place is not None and place.holder is not None:
                        os.kill(place.holder.pid, signal.SIGKILL)
                        place.close()

    def left(self) -> list[str]:
        """The processes that carry our tag."""
        found: list[str] = []
        for name in os.listdir("/proc"):
            with suppress(OSError):
                if self.tag.encode() in Path(f"/proc/{name}/environ").read_bytes():
                    found.append(Path(f"/proc/{name}/cmdline").read_text())
        return found

    def stand_ins(self) -> list[str]:
        """What stands where nothing was."""
        where = (self.project("plain"), self.project("drafted"), Path(self.draft, "upper"))
        return [str(path) for directory in where for path in directory.glob(".*")]


@pytest.fixture
def scene() -> Iterator[Scene]:
    if strength_within(()) != "full":
        pytest.skip("there is no full sandbox on this machine")
    with tempfile.TemporaryDirectory(dir="/var/lib", prefix="holdfast-test-") as made:
        scene = Scene(Path(made).resolve())
        for name in ("drafted", "plain"):
            scene.project(name).mkdir()
        scene.state.mkdir(mode=0o700)
        try:
            scene.hold()
        except PlaceUnavailable as unavailable:
            pytest.skip(f"no place can be made here: {unavailable}")
        try:
            yield scene
        finally:
            end(scene.draft)


async def shut_in(talk: Talk, scene: Scene, project: str, script: str = SCRIPT) -> int:
    """Ask for a process in a sandbox, and do not wait for it."""
    where = scene.project(project)
    env = {"PATH": "/usr/bin:/bin", "TAG": scene.tag}
    return await talk.ask(
        "process/start",
        {
            "processId": uuid4().hex,
            "argv": ["sh", "-c", script],
            "cwd": where.as_uri(),
            "env": env,
            "tty": False,
            "sandbox": workspace_write(where),
        },
    )


@contextmanager
def losing() -> Generator[None]:
    """Whoever was killed is just being replaced, and cannot answer."""
    try:
        yield
    except* (Refused, Failure, KeyError):
        pass


class Play:
    """Servers one after the other, each of which is killed or sees others be killed."""

    def __init__(self, scene: Scene, servers: AsyncExitStack) -> None:
        self._scene, self._servers = scene, servers
        self._server: Served | None = None
        self._token = ""

    async def server(self) -> Served:
        """A server that lives."""
        state = self._scene.state
        if self._server is None or self._server.process.returncode is not None:
            options = ("--token-file", str(state / "token"), "--detached-ttl", "1")
            running = served(state, *options, leave=True)
            self._server = await self._servers.enter_async_context(running)
        return self._server

    @asynccontextmanager
    async def talks(self) -> AsyncGenerator[tuple[Talk, Talk]]:
        """One who works in the draft, and one who works anywhere."""
        url = (await self.server()).url
        token = (self._scene.state / "token").read_text().strip()
        if not self._token:
            async with operating(lambda: connect_websocket(url, token=token)) as operator:
                self._token = await operator.bind_place(self._scene.draft)
        async with talking(url, token=self._token) as inside, talking(url, token=token) as outside:
            for talk in (inside, outside):
                await talk.introduce()
            yield inside, outside


async def play(scene: Scene, rounds: int, chance: random.Random) -> None:
    async with AsyncExitStack() as servers:
        play = Play(scene, servers)
        await kill(scene, play, rounds, chance)
        await settle(scene, play)
        server = await play.server()
        server.process.terminate()
        await server.process.wait()


async def kill(scene: Scene, play: Play, rounds: int, chance: random.Random) -> None:
    """Kill one of them at a time, each while something is being shut in."""
    for _ in range(rounds):
        scene.hold()
        victim = chance.choice(("server", "keeper", "holder", "holder"))
        with losing():
            async with play.talks() as (inside, outside):
                await shut_in(inside, scene, "drafted")
                await shut_in(outside, scene, "plain")
                await anyio.sleep(chance.uniform(0.0, 0.15))
                scene.kill(victim, await play.server())
        if victim == "server":
            server = await play.server()
            server.process.kill()
            await server.process.wait()


async def settle(scene: Scene, play: Play) -> None:
    """After all that, both still work, and leave nothing."""
    is_done = False
    for _ in range(_TRIES_MAX):
        scene.hold()  # again: who is just dying still held it a moment ago
        with losing():
            async with play.talks() as talks:
                for talk, project in zip(talks, ("drafted", "plain"), strict=True):
                    number = await shut_in(talk, scene, project, "exit 0")
                    await talk.closed((await talk.answer(number))["processId"])
                is_done = True
        if is_done:
            break
        await anyio.sleep(0.1)
    assert is_done, "nothing works any more"
    await until(lambda: not scene.left(), within=30)
    await until(lambda: not scene.stand_ins(), within=30)


def mounted() -> str:
    return Path("/proc/self/mountinfo").read_text()


async def check(scene: Scene, rounds: int) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    await play(scene, rounds, random.Random(seed))
    end(scene.draft)
    assert str(scene.base) not in mounted()
    assert not [each for each in places() if each.holder.directory == scene.draft]
    assert scene.left() == []
    assert [path.name for path in scene.project("drafted").iterdir()] == []
    assert [path.name for path in scene.project("plain").iterdir()] in ([], ["file"])


async def test_nothing_is_left_whoever_is_killed(scene: Scene) -> None:
    await check(scene, ROUNDS)


@pytest.mark.long
@pytest.mark.timeout(900)
async def test_nothing_is_left_whoever_is_killed_a_hundred_times(scene: Scene) -> None:
    await check(scene, ROUNDS_LONG)


@pytest.mark.promise("X14")
@pytest.mark.parametrize(
    "rounds", [6, pytest.param(80, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
async def test_placeholders_go_by_themselves_when_all_are_killed(scene: Scene, rounds: int) -> None:
    """No next sandbox and no next server: what is left is removed all the same."""
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    async with AsyncExitStack() as servers:
        play = Play(scene, servers)
        await kill(scene, play, rounds, random.Random(seed))
        server = await play.server()
        for _ in range(_TRIES_MAX):
            scene.hold()
            with losing():
                async with play.talks() as (inside, outside):
                    await shut_in(inside, scene, "drafted")
                    await shut_in(outside, scene, "plain")
                    await until(lambda: bool(scene.left()), within=5)
            if scene.left():
                break
        assert scene.stand_ins()
        for victim in ("server", "keeper", "holder"):
            scene.kill(victim, server)
        await server.process.wait()

        await until(lambda: not scene.stand_ins(), within=60)
