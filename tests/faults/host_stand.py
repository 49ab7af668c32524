"""A session with everything real: a plane, a place, a host and an agent, in a home of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from holdfast.app.settings import Settings, parse
from holdfast.cli.belongings import belongings
from holdfast.cli.commands import Request
from holdfast.cli.core.stop_page import Sort
from holdfast.cli.exec_dial import server_of
from holdfast.cli.session_consent import agree
from holdfast.exec import Client
from holdfast.exec.model import Command
from holdfast.failures import Failure
from holdfast.host.book import read_book
from holdfast.host.dialling import Kept
from holdfast.host.model import Answer, AnyRecord, Happened, Prompt, TurnClosed
from holdfast.host.protocol import Trouble
from holdfast.host.sitting import Reconnecting, Responsive, Seat, Seen, Unresponsive, seated
from holdfast.runners.model import Asked
from holdfast.workbench import Workbench, open_draft
from holdfast.world import command_of, environment_of, system_processes
from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Call, Reply, Say, run
from tests.parts.model_server import ModelRequest, ModelServer
from tests.shape.source import ROOT

IN_TOOL = "setsid sleep 300 >/dev/null 2>&1 & echo begun; sleep 4; echo over > over.txt"
LONG = "And so on. " * 1000  # more than fits into what a file has left of its last page
AGENTS = {"rehearsal": "holdfast.runners.rehearsing", "codex": "app-server"}
SAID = {Reconnecting: "reconnecting", Unresponsive: "unresponsive", Responsive: "responsive"}
LONGEST = 100.0


@dataclass
class Stand:
    """Where it all happens, and what has been seen of it."""

    home: Path
    runner: str
    settings: Settings
    draft: str
    seat: Seat
    acknowledged: list[str] = field(default_factory=list[str])
    seen: list[Seen] = field(default_factory=list[Seen])
    answers: bool = False
    _answered: set[str] = field(default_factory=set[str])

    @property
    def socket(self) -> Path:
        return self.home / "h.sock"

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def kept(self) -> list[Kept]:
        return [each for each in self.seen if isinstance(each, Kept)]

    @property
    def said(self) -> list[str]:
        """What a person was told of the trouble, each once."""
        words = [SAID.get(type(each), "") for each in self.seen]
        words += [
            str(each.failure["code"])
            for each in self.seen
            if isinstance(each, Trouble) and each.failure is not None
        ]
        return list(dict.fromkeys(filter(None, words)))

    @property
    def journal(self) -> Path:
        return self.home / "session" / "journal.jsonl"

    def closed(self, turn: int) -> TurnClosed | None:
        ends = [each.record for each in self.kept if isinstance(each.record, TurnClosed)]
        return next((each for each in ends if each.turn == turn), None)

    async def prompt(self, command: str, text: str) -> None:
        await self.seat.command(Prompt(command, text))
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
            if isinstance(record, Happened) and isinstance(record.event, Asked):
                asked = record.event
                if asked.question not in self._answered:
                    self._answered.add(asked.question)
                    word = next(choice.word for choice in asked.choices if not choice.is_refusal)
                    with suppress(Failure):  # the turn may be over
                        await self.seat.command(Answer(f"a-{asked.question}", asked.question, word))
                        self.acknowledged.append(f"a-{asked.question}")

    def pid_of_runner(self) -> int:
        mark = f"HOLDFAST_HOME={self.home}".encode()
        (pid,) = (
            each.pid
            for each in system_processes()
            if AGENTS[self.runner] in command_of(each.pid) and mark in environment_of(each.pid)
        )
        return pid

    def pid_of_host(self) -> int:
        mark = f"HOLDFAST_HOME={self.home}".encode()
        (pid,) = (
            each.pid
            for each in system_processes()
            if "tests.faults.host_program" in command_of(each.pid)
            and mark in environment_of(each.pid)
        )
        return pid

    def pid_of(self, sort: Sort) -> int:
        (pid,) = (each.pid for each in belongings(self.settings.state) if each.sort is sort)
        return pid

    def left_over(self) -> list[str]:
        """What still runs for this home, but for the plane and the place: they stay a while."""
        mark = f"HOLDFAST_HOME={self.home}".encode()
        staying = {each.pid for each in belongings(self.settings.state)}
        return [
            command_of(each.pid)
            for each in system_processes()
            if not each.is_dead
            and each.pid not in staying
            and each.pid != os.getpid()
            and mark in environment_of(each.pid)
        ]

    def records(self) -> list[tuple[int, AnyRecord]]:
        return list(read_book(self.journal))

    def publisher(self) -> subprocess.Popen[bytes]:
        words = [str(self.project), str(self.settings.state), self.draft]
        command = [sys.executable, "-m", "tests.faults.host_publisher", *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)

    def visitor(self, command: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.faults.host_visitor", str(self.socket), command]
        return subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT)


def shell(command: str, *, call_id: str, yield_time_ms: int = 10_000) -> Call:
    """A command of our own agent; what is asked for leaves the sandbox."""
    reach = "open" if call_id == "ask" else "sandbox"
    arguments = {"command": command, "seconds": yield_time_ms // 1000, "reach": reach}
    return Call("shell", arguments, call_id)


def reply(state: str, runner: str) -> Callable[[ModelRequest], Reply]:
    """What the model of Codex, or of our own agent, says by what it was last asked for."""
    use = shell if runner == "native" else run

    def choose(request: ModelRequest) -> Reply:
        done = request.tool_outputs
        if "again" in request.texts:
            after = use("echo after > after.txt", call_id="after")
            return [Say("Here.")] if "after" in done else [after]
        if state == "approval pending":
            return [Say("Two.")] if "ask" in done else [use("echo x > asked.txt", call_id="ask")]
        if "before" not in done:
            return [use("echo before > before.txt", call_id="before")]
        if state == "in a tool" and "tool" not in done:
            return [use(IN_TOOL, call_id="tool", yield_time_ms=20_000)]
        if state == "streaming":
            return [Say(f"One. {LONG}", deltas=30, pause=0.15)]
        return [Say(f"Two. {LONG}")]

    return choose


def script(state: str) -> dict[str, object]:
    """The same for the rehearsal."""
    steps: dict[str, list[dict[str, object]]] = {
        "streaming": [{"say": "One."}, {"wait": 4}],
        "in a tool": [{"run": IN_TOOL}],
        "approval pending": [{"ask": "May I?", "approval": True}],
    }
    before = {"write": "before.txt", "content": "before\n"}
    first = [before, *steps.get(state, []), {"say": f"Two. {LONG}"}]
    again = [{"write": "after.txt", "content": "after\n"}, {"say": "Here."}]
    return {"turn": [{"step": first}, {"step": again}]}


def given_to(
    runner: str, state: str, home: Path, settings: Settings, url: str
) -> dict[str, object]:
    """What the host's program is given for its runner."""
    given: dict[str, object] = {"scratch": str(home / "scratch")}
    match runner:
        case "codex":
            given["policy"] = "untrusted" if state == "approval pending" else "never"
            given["program"] = str(codex_binary())
            given["env"] = codex_home(home / "c", url)
        case "native":
            make_native(home, settings, url)
        case _:
            given["script"] = str(home / "script.json")
            (home / "script.json").write_text(json.dumps(script(state)))
    return given


@asynccontextmanager
async def stand(runner: str, state: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Stand]:
    """Set it all up, and leave nothing behind."""
    home = Path(tempfile.mkdtemp(prefix="hf-", dir="/var/tmp"))
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{ROOT}")
    settings = parse(os.environ, person=home)
    for name in ("project", "session", "scratch"):
        (home / name).mkdir(mode=0o700)
    (home / "project" / "readme.txt").write_text("A project.\n")
    draft = open_draft(Workbench.at(home / "project", settings.state)).id
    try:
        async with ModelServer(reply(state, runner)) as model:
            given = given_to(runner, state, home, settings, model.url)
            order = {
                "session": f"s-{home.name}",
                "directory": str(home / "session"),
                "socket": str(home / "h.sock"),
                "project": str(home / "project"),
                "draft": draft,
                "runner": runner,
            }
            (home / "order.json").write_text(json.dumps({"order": order, "given": given}))
            argv = (sys.executable, "-m", "tests.faults.host_program", str(home / "order.json"))

            async def start() -> None:
                command = Command(argv, str(ROOT), dict(os.environ))
                async with Client(server_of(Request(), settings).dial_or_start) as client:
                    await client.start(command)

            async with seated(home / "h.sock", start) as seat:
                yield Stand(home, runner, settings, draft, seat)
    finally:
        clear_up(home, settings)


def make_native(home: Path, settings: Settings, url: str) -> None:
    """Let our own agent know a provider, and agree to it."""
    settings.config.mkdir(parents=True)
    provider = f'[there]\nformat = "responses"\nurl = "{url}"\n'
    (settings.config / "providers.toml").write_text(provider)
    agreed = Request("ask", given=(("--consent", "True"),))
    agree(Workbench.at(home / "project", settings.state), "there", agreed)


def clear_up(home: Path, settings: Settings) -> None:
    for each in belongings(settings.state):
        with suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGKILL)
    mark = f"HOLDFAST_HOME={home}".encode()
    for each in system_processes():
        if each.pid != os.getpid() and mark in environment_of(each.pid):
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)


def mounts_below(home: Path) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if str(home) in line:
            yield line
