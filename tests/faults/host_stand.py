"""A session as people have it: begun by `holdfast ask`, with everything real, in its own home."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.app.settings import Settings, parse
from holdfast.app.wiring.host import HostStarter
from holdfast.app.wiring.local_server import local_endpoint
from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.render.stop import Sort
from holdfast.failures import Failure
from holdfast.host.client import RecordReceived
from holdfast.host.model import AnswerCommand, AnyRecord, EventRecorded, PromptCommand, TurnClosed
from holdfast.host.protocol import JournalTrouble
from holdfast.host.supervision import (
    HostSupervisor,
    Reconnecting,
    Responsive,
    SupervisionEvent,
    Unresponsive,
    supervise_host,
)
from holdfast.runners.model import QuestionAsked
from holdfast.workbench import Workbench
from holdfast.world import agents, command_of, environment_of, system_processes
from tests.cli.running import COMMAND
from tests.faults.host_casts import CASTS, HELLO, LEFT_BEHIND, Piece, reply
from tests.faults.host_disk import Disk, disk_at
from tests.parts.cable import Cable, cable_to_port, cable_to_socket
from tests.parts.model_server import ModelServer
from tests.shape.source import ROOT

SAID = {Reconnecting: "reconnecting", Unresponsive: "unresponsive", Responsive: "responsive"}
LONGEST = 100.0
DISK_BYTES = 96 << 20


@dataclass
class Stand:
    """Where it all happens, and what has been seen of it."""

    home: Path
    runner: str
    settings: Settings
    session: KeptSession
    disk: Disk | None
    cables: list[Cable]
    model: ModelServer
    acknowledged: list[str] = field(default_factory=list[str])
    seen: list[SupervisionEvent] = field(default_factory=list[SupervisionEvent])
    answers: bool = False
    seat: HostSupervisor = field(init=False)
    _sitting: AsyncExitStack = field(default_factory=AsyncExitStack)
    _answered: set[str] = field(default_factory=set[str])

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def socket(self) -> Path:
        return Sessions(self.settings).socket(self.session)

    @property
    def journal(self) -> Path:
        return Sessions(self.settings).directory(self.session) / "journal.jsonl"

    @property
    def kept(self) -> list[RecordReceived]:
        return [each for each in self.seen if isinstance(each, RecordReceived)]

    @property
    def said(self) -> list[str]:
        """What a person was told of the trouble, each once."""
        words = [SAID.get(type(each), "") for each in self.seen]
        words += [
            str(each.failure["code"])
            for each in self.seen
            if isinstance(each, JournalTrouble) and each.failure is not None
        ]
        return list(dict.fromkeys(filter(None, words)))

    async def sit(self) -> None:
        """Take a seat where we have seen everything so far, as `attach` does."""
        start = HostStarter.of(self.session, self.settings)
        after = self.kept[-1].seq if self.kept else 0
        self.seat = await self._sitting.enter_async_context(
            supervise_host(self.socket, start, after=after)
        )

    async def leave(self) -> None:
        """Be at the session no more."""
        await self._sitting.aclose()

    def closed(self, turn: int) -> TurnClosed | None:
        ends = [each.record for each in self.kept if isinstance(each.record, TurnClosed)]
        return next((each for each in ends if each.turn == turn), None)

    async def prompt(self, command: str, text: str) -> None:
        await self.seat.command(PromptCommand(command, text))
        self.acknowledged.append(command)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Watch until something holds; answer what is asked, if that is wanted."""
        with anyio.fail_after(LONGEST):
            while not holds():
                if self.answers:
                    await self.answer()
                self.seen += await self.seat.receive()

    async def answer(self) -> None:
        for each in self.kept:
            record = each.record
            if isinstance(record, EventRecorded) and isinstance(record.event, QuestionAsked):
                asked = record.event
                if asked.question not in self._answered:
                    self._answered.add(asked.question)
                    word = next(choice.word for choice in asked.choices if not choice.is_refusal)
                    with suppress(Failure):  # the turn may be over
                        await self.seat.command(
                            AnswerCommand(f"a-{asked.question}", asked.question, word)
                        )
                        self.acknowledged.append(f"a-{asked.question}")

    def marked(self) -> set[tuple[int, int]]:
        """Every living process of the session's agents, told from a later one of the same pid."""
        return {(each.pid, each.started) for each in agents(self.session.id)}

    def is_tool_running(self) -> bool:
        """Whether what the tool leaves behind runs: a tool is told of before it has started."""
        return any(command_of(each.pid) == LEFT_BEHIND for each in agents(self.session.id))

    def host_pid(self) -> int | None:
        """The host, if there is one just now."""
        return next((p for p, c in self._ours() if f"main host {self.session.id}" in c), None)

    async def draft(self) -> bytes:
        """What the draft changes, with its content."""
        words = [*COMMAND, "draft", "diff", "--draft", self.session.draft]
        return (await anyio.run_process(words, cwd=self.project)).stdout

    def pid_of_runner(self) -> int:
        (pid,) = (pid for pid, command in self._ours() if CASTS[self.runner].process in command)
        return pid

    def pid_of_host(self) -> int:
        (pid,) = (pid for pid, command in self._ours() if f"main host {self.session.id}" in command)
        return pid

    def pid_of(self, sort: Sort) -> int:
        (pid,) = (each.pid for each in belongings(self.settings.state) if each.sort is sort)
        return pid

    def left_over(self) -> list[str]:
        """What still runs for this home, but for the plane and the place: they stay a while."""
        staying = {each.pid for each in belongings(self.settings.state)}
        return [command for pid, command in self._ours() if pid not in staying]

    def remains(self) -> list[str]:
        """What is left of it once all of it was ended: processes, and mounts of anybody."""
        return [command for _, command in self._ours()] + sorted(mounts_below(self.home))

    def records(self) -> list[tuple[int, AnyRecord]]:
        return Sessions(self.settings).records(self.session)

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """A command of ours, begun by a person in the project."""
        return subprocess.Popen(
            [*COMMAND, *words],
            cwd=self.project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )

    def publisher(self) -> subprocess.Popen[bytes]:
        return self.command("publish", "--yes", "--draft", self.session.draft)

    def is_publishing(self, publisher: subprocess.Popen[bytes]) -> bool:
        """Whether a publisher has what is kept of the project in its hands, or had it."""
        kept = str(Workbench.at(self.project, self.settings.state).directory)
        with suppress(OSError):
            for name in os.listdir(f"/proc/{publisher.pid}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{publisher.pid}/fd/{name}").startswith(kept):
                        return True
        return publisher.poll() is not None

    def _ours(self) -> Iterator[tuple[int, str]]:
        return _ours(self.home)


def _ours(home: Path) -> Iterator[tuple[int, str]]:
    mark = f"HOLDFAST_HOME={home}".encode()
    for each in system_processes():
        if not each.is_dead and each.pid != os.getpid() and mark in environment_of(each.pid):
            yield each.pid, command_of(each.pid)


def end_all(home: Path) -> None:
    """End at once whoever runs for a home, also who holds its places."""
    settings = parse({"HOLDFAST_HOME": str(home)}, person=home)
    for _ in range(10):  # somebody may start somebody while we look
        pids = {each.pid for each in belongings(settings.state)} | {pid for pid, _ in _ours(home)}
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not pids:
            break


def complaints(home: Path) -> list[str]:
    """What the processes of a home have complained about, such as a host that died by itself."""
    found = (home / "state" / "exec" / "processes").glob("*/stderr")
    return [each.read_text(errors="replace") for each in found]


def mounts_below(home: Path) -> set[str]:
    """Whatever anybody has mounted there, but for the disk itself."""
    found: set[str] = set()
    for each in system_processes():
        with suppress(OSError):
            for line in os.fsdecode(Path(f"/proc/{each.pid}/mountinfo").read_bytes()).splitlines():
                if line.split()[4].startswith(f"{home}/"):
                    found.add(f"{each.pid} {command_of(each.pid)}: {line}")
    return found


@asynccontextmanager
async def stand(
    runner: str, piece: Piece, monkeypatch: pytest.MonkeyPatch, *, disk: bool, cables: bool
) -> AsyncGenerator[Stand]:
    """Begin a session with `holdfast ask`, and leave nothing behind."""
    home = Path(tempfile.mkdtemp(prefix="hf-", dir="/var/tmp"))
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", str(ROOT / "src")))
    settings = parse(os.environ, person=home)
    with ExitStack() as undone:
        undone.callback(shutil.rmtree, home, ignore_errors=True)
        found = undone.enter_context(disk_at(home, size_bytes=DISK_BYTES)) if disk else None
        undone.callback(end_all, home)
        async with AsyncExitStack() as stack:
            laid: list[Cable] = []
            model = await stack.enter_async_context(ModelServer(reply(runner, piece)))
            url = model.url
            if cables:
                url = await _behind_cables(stack, laid, settings, url)
            here = await _begun(home, runner, piece, url, monkeypatch)
            made = Stand(home, runner, settings, here, found, laid, model)
            if cables:
                laid.append(await stack.enter_async_context(cable_to_socket(made.socket)))
            try:
                await made.sit()
                yield made
            finally:
                await made.leave()


async def _behind_cables(
    stack: AsyncExitStack, laid: list[Cable], settings: Settings, url: str
) -> str:
    """Put the plane and the model behind a cable each; return where the model is now."""
    await (await local_endpoint(settings).dial_or_start()).aclose()
    laid.append(await stack.enter_async_context(cable_to_socket(settings.runtime / "exec.sock")))
    port = url.rpartition(":")[2].partition("/")[0]
    cable, near = await stack.enter_async_context(cable_to_port(int(port)))
    laid.append(cable)
    return url.replace(f":{port}/", f":{near}/")


async def _begun(
    home: Path, runner: str, piece: Piece, url: str, monkeypatch: pytest.MonkeyPatch
) -> KeptSession:
    """Ask for the first time, as a person does, in a project with a file."""
    (home / "project").mkdir(mode=0o700)
    (home / "project" / "readme.txt").write_text("A project.\n")
    played = CASTS[runner].set_up(home, url, piece)
    for name, value in played.environment.items():
        monkeypatch.setenv(name, value)
    await anyio.run_process(["sync", "--file-system", home])  # what was there before stays
    words = [*COMMAND, "ask", "--json", *played.words, HELLO]
    done = await anyio.run_process(words, cwd=home / "project", check=False)
    assert done.returncode == 0, (done.stdout, done.stderr, complaints(home))
    return Sessions(parse(os.environ, person=home)).find(None)
