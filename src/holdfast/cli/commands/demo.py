"""Show in a minute what Holdfast is for: without a key, without a network, without a trace."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from holdfast.app.sessions import NAME_CELLS
from holdfast.app.settings import Settings, environment
from holdfast.app.wiring.agent_choice import AgentChoices
from holdfast.cli.commands.running_parts import belongings
from holdfast.cli.declarations import Request
from holdfast.cli.failures import DemoFailed, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import look_for, write
from holdfast.cli.render.stop import Sort
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.turns import words_of
from holdfast.nouns import printable
from holdfast.runners import write_sample
from holdfast.world import command_of, disk_failure, system_processes

_INDENT = "    "
_LEADS_OUT = ("Review it:", "Publish it:", "Continue:", "Report:")  # of a session that is soon gone
# Variables that would have another agent work here than the scripted one, or publish otherwise.
_SETTINGS = tuple(
    f"HOLDFAST_{each}" for each in ("RUNNER", "MODEL", "EFFORT", "BUDGET_", "PUBLISH_IGNORED")
)
_US = (sys.executable, "-P", "-m", "holdfast.cli.main")


def demo(request: Request, settings: Settings) -> Outcome:
    """Let a scripted agent fix a small project while processes behind it are killed."""
    sample = request.value("--sample")
    if sample is not None:
        return _write_sample(Path(sample), settings)
    look = look_for(sys.stdout, request, settings)
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as made:
        directory = Path(made).resolve()
        write_sample(directory / "basket")
        AgentChoices(directory / "home" / "state").add_sample(directory / "basket")
        show = Show(directory, look)
        try:
            _play(show)
        finally:
            show.clear_up()
    show.tell("That was all of it, and nothing of it is left.")
    return Outcome()


def _write_sample(directory: Path, settings: Settings) -> Outcome:
    if os.path.lexists(directory):
        problem = f"{printable(str(directory))} is there already"
        raise UsageWrong(problem=problem, read_on="holdfast demo --help")
    try:
        write_sample(directory)
    except OSError as error:
        raise disk_failure(error, path=str(directory)) from error
    AgentChoices(settings.state).add_sample(directory)
    return Outcome()


def _play(show: Show) -> None:
    show.tell("A small project with a mistake in it. Its tests fail:")
    show.run("python3", "-m", "unittest", "-q", status=1)
    show.tell("An agent fixes it. It works in a draft: the project does not change.")
    session = show.ask("Fix the failing test")
    show.ours("draft", "diff")
    show.tell("While it works, the server that all its processes run on is killed (kill -9):")
    show.ask("Write down what was wrong", session, when="I will write", then=show.kill_server)
    show.tell("The turn was not affected. Now the host of the session is killed:")
    show.ask("Add a test", session, when="I will add", then=show.kill_host, status=69)
    show.tell("Nothing that was said is lost. We just go on:")
    show.ask("Go on", session)
    show.tell("What is good is published, as a whole or not at all:")
    show.ours("publish", "--yes")
    show.run("python3", "-m", "unittest", "-q")
    show.tell("And whatever was there before can be had again:")
    show.ours("checkpoint", "list")
    show.ours("restore", show.first_checkpoint(), "--yes")
    show.run("python3", "-m", "unittest", "-q", status=1)


class Show:
    """A directory that the demonstration happens in, and the commands that are shown."""

    def __init__(self, directory: Path, look: Look) -> None:
        self._look = look
        self._project = directory / "basket"
        self._home = directory / "home"
        variables = environment().items()
        self._env = {name: each for name, each in variables if not name.startswith(_SETTINGS)} | {
            "HOLDFAST_HOME": str(self._home),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def tell(self, text: str) -> None:
        """Say what comes next."""
        write("\n" + "\n".join(self._look.wrap(text, indent=0)) + "\n")

    def run(self, *argv: str, status: int = 0) -> None:
        """Show a command and what it prints; it must end as expected."""
        self._shown(argv, argv, status)

    def ours(self, *words: str, status: int = 0) -> None:
        """The same with a command of ours."""
        self._shown(("holdfast", *words), (*_US, *words), status)

    def ask(
        self,
        prompt: str,
        session: str = "",
        *,
        when: str = "",
        then: Callable[[], None] | None = None,
        status: int = 0,
    ) -> str:
        """Ask the agent, do something when it says so, and return its session."""
        words = ("ask", *(("--session", session) if session else ()), prompt)

        def on_line(line: str) -> None:
            if then is not None and line.startswith(when):
                then()

        self._shown(("holdfast", *words), (*_US, *words), status, on_line=on_line)
        listed = self._read("sessions", "list", "--json").splitlines()
        return str(json.loads(listed[0])["id"])[-NAME_CELLS:]

    def first_checkpoint(self) -> str:
        """The oldest checkpoint of the project."""
        listed = self._read("checkpoint", "list", "--json").splitlines()
        return str(json.loads(listed[-1])["id"])

    def kill_server(self) -> None:
        """Kill the server that runs the processes."""
        for each in belongings(self._home / "state"):
            if each.sort is Sort.SERVER:
                self._kill(each.pid)

    def kill_host(self) -> None:
        """Kill the process that holds the conversation."""
        # All of them before the first is killed: `system_processes` also lists what starts while it
        # is read, and the client of the session starts another host at once.
        found = [
            each
            for each in system_processes()
            if "holdfast.cli.main host" in command_of(each.pid) and self._is_ours(each.pid)
        ]
        pids = {each.pid for each in found}
        for each in found:
            if each.parent not in pids:  # a child that has not called exec yet looks like its host
                self._kill(each.pid)

    def clear_up(self) -> None:
        """End all that still runs."""
        state = self._home / "state"
        if state.is_dir():
            self._read("stop", "--all", "--state", str(state), "--yes")

    def _is_ours(self, pid: int) -> bool:
        try:
            return os.readlink(f"/proc/{pid}/cwd") == str(self._project)
        except OSError:
            return False

    def _kill(self, pid: int) -> None:
        write(self._look.paint(f"  $ kill -9 {pid}", Tone.CAREFUL) + "\n")
        os.kill(pid, signal.SIGKILL)

    def _shown(
        self,
        said: Sequence[str],
        argv: Sequence[str],
        status: int,
        *,
        on_line: Callable[[str], None] | None = None,
    ) -> None:
        shown = "\n".join(self._look.wrap(f"$ {shlex.join(said)}", indent=2))
        write(self._look.paint(shown, Tone.STRONG) + "\n")
        with subprocess.Popen(
            argv,
            cwd=self._project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout is not None
            is_read = False
            try:
                for line in process.stdout:
                    self._relay(line)
                    if on_line is not None:
                        on_line(line)
                is_read = True
            finally:
                if not is_read:  # nothing of the show goes on without us
                    process.kill()
        if process.returncode != status:
            raise DemoFailed(command=shlex.join(said), status=process.returncode, expected=status)

    def _relay(self, line: str) -> None:
        """Print a line of a command, wrapped; leave out hints about the temporary session."""
        if line.startswith(_LEADS_OUT):
            return
        room = self._look.width - len(_INDENT)
        write("".join(f"{_INDENT}{each}\n" for each in words_of(line, room).splitlines() or [""]))

    def _read(self, *words: str) -> str:
        done = subprocess.run(
            [*_US, *words],
            cwd=self._project,
            env=self._env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout
