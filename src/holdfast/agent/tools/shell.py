"""Tool that runs shell commands, in the sandbox unless the person permits more."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Final, Literal

import anyio
import msgspec
from anyio.abc import TaskGroup
from msgspec import Meta

from holdfast.agent.arguments import claim, fields, given, number, text
from holdfast.agent.failures import ToolRefused
from holdfast.agent.model import ToolResult, ToolSpec
from holdfast.agent.permission_rules import PermissionRequest, PermissionScope, single_line
from holdfast.agent.permissions import Permissions
from holdfast.agent.ports import ToolContext
from holdfast.agent.sandbox import SandboxConfig, SandboxLevel
from holdfast.agent.text import PAGE_MAX
from holdfast.agent.tools.process_output import OutputOffsets, OutputWindow, legible, page_of
from holdfast.exec import Process
from holdfast.exec.model import Exited, Output
from holdfast.failures import Failure
from holdfast.world import background_tasks, sweep

# Processes that the model started.

LIFE_LONGEST: Final = 600.0
LIVING_MAX: Final = 16
_REMEMBERED_MAX: Final = 64
# Seconds to wait for output of descendants that hold the pipe after the command has exited.
_LINGER: Final = 1.0
_END_LONGEST: Final = 5.0
_PAGE_BYTES: Final = 256 * 1024

Watcher = Callable[[bytes], None]
"""Receives each chunk of output; must not block."""


class RunningCommand:
    """A process started by the model, with bounded output buffers."""

    def __init__(self, name: str, process: Process, *, mark: str, freedom: SandboxLevel) -> None:
        self.name, self._process = name, process
        self._mark, self._freedom = mark, freedom
        self.window = OutputWindow()
        self.status: int | None = None
        self.is_denied = False  # the sandbox may have denied an access
        self.note = ""  # why it was killed, if it was
        self.is_over = False
        self.since = self.heard = anyio.current_time()
        self.watcher: Watcher | None = None
        self._places = OutputOffsets()
        self._stirred = anyio.Event()

    @property
    def total(self) -> int:
        """Bytes of output so far."""
        return self._places.total

    async def follow(self) -> None:
        """Buffer output until the process has exited, within its time limit; then clean up."""
        try:
            with anyio.move_on_after(LIFE_LONGEST) as life:
                await self._hear()
            if life.cancelled_caught:
                self.note = f"ended after {LIFE_LONGEST / 60:g} minutes"
        except Failure as failure:
            self.note = failure.user_message
        finally:
            with anyio.CancelScope(shield=True):
                await self._put_down()
            self.is_over = True
            self._stir()

    async def wait(self, seconds: float) -> None:
        """Return on output, on exit, or after a timeout in seconds."""
        if not self.is_over:
            with anyio.move_on_after(seconds):
                await self._stirred.wait()

    async def write(self, data: bytes) -> None:
        """Write to stdin."""
        await self._process.write(data)

    async def end(self, note: str) -> None:
        """Kill the process and its descendants, and wait for that."""
        if self.is_over:
            return
        self.note = self.note or note
        with anyio.move_on_after(_END_LONGEST, shield=True):
            await self._put_down()
            while not self.is_over:
                await self._stirred.wait()

    async def recall(self, offset: int) -> str:
        """Return output from an offset on, as far as the exec-server retains it."""
        place = self._places.before(offset)
        found = bytearray()
        seq, at = place.seq, place.offset
        while at < self.total and len(found) <= PAGE_MAX:
            page = await self._process.recall(after=seq, bytes_max=_PAGE_BYTES)
            if not page.chunks or page.first_retained > seq + 1:
                break
            for chunk in page.chunks:
                found += chunk.data[max(0, offset - at) :]
                at += len(chunk.data)
                seq = chunk.seq
        return self._recalled(page_of(bytes(found), PAGE_MAX), offset)

    def _recalled(self, data: bytes, offset: int) -> str:
        if not data:
            return f"(nothing is kept any more from offset {offset} of {self.total})"
        beyond = offset + len(data)
        more = f"\n… (go on from offset {beyond} of {self.total})" if beyond < self.total else ""
        return legible(data) + more

    async def _hear(self) -> None:
        linger = None
        while True:
            with anyio.move_on_after(linger):
                events = await self._process.receive()
                if not events:
                    return
                for event in events:
                    if isinstance(event, Output):
                        self._take(event)
                    elif isinstance(event, Exited):
                        self.status, self.is_denied = event.status, event.sandbox_denied
                        linger = _LINGER
                self._stir()
                continue
            # Descendants keep the pipe open, possibly forever.
            return

    def _take(self, output: Output) -> None:
        self.heard = anyio.current_time()
        self.window.feed(output.data)
        self._places.note(output.seq, len(output.data))
        if self.watcher is not None:
            self.watcher(output.data)

    async def _put_down(self) -> None:
        with suppress(Failure), anyio.move_on_after(_END_LONGEST):
            await self._process.terminate()  # kills the rest of its process group, too
        if self._freedom is SandboxLevel.OPEN:
            sweep(self._mark)

    def _stir(self) -> None:
        self._stirred.set()
        self._stirred = anyio.Event()


class ShellCommands:
    """All processes of a session that the model started."""

    def __init__(self, sandbox: SandboxConfig, tasks: TaskGroup) -> None:
        self._ground, self._tasks = sandbox, tasks
        self._all: dict[str, RunningCommand] = {}
        self._count = 0

    @property
    def living(self) -> list[RunningCommand]:
        """Processes that have not exited."""
        return [each for each in self._all.values() if not each.is_over]

    async def start(self, line: str, freedom: SandboxLevel, *, has_stdin: bool) -> RunningCommand:
        """Start a command line, and follow it in the background."""
        if len(self.living) >= LIVING_MAX:
            names = ", ".join(each.name for each in self.living)
            raise ToolRefused(reason=f"{LIVING_MAX} processes are running; kill one of: {names}")
        mark = self._ground.new_mark()
        command = self._ground.shell(line, freedom, mark=mark, has_stdin=has_stdin)
        process = await self._ground.processes.start(command)
        self._count += 1
        running = RunningCommand(f"sh{self._count}", process, mark=mark, freedom=freedom)
        self._all[running.name] = running
        self._forget_some()
        self._tasks.start_soon(running.follow)
        return running

    def find(self, name: str) -> RunningCommand:
        """Return a process by name; raises ToolRefused if there is none."""
        if name not in self._all:
            known = ", ".join(each.name for each in self.living) or "none is running"
            raise ToolRefused(reason=f"there is no process {name!r} ({known})")
        return self._all[name]

    async def end_all(self, note: str) -> None:
        """Kill all processes that have not exited."""
        async with anyio.create_task_group() as tasks:
            for running in self.living:
                tasks.start_soon(running.end, note)

    def _forget_some(self) -> None:
        over = [name for name, each in self._all.items() if each.is_over]
        for name in over[: max(0, len(self._all) - _REMEMBERED_MAX)]:
            del self._all[name]


@asynccontextmanager
async def open_shell_commands(sandbox: SandboxConfig) -> AsyncGenerator[ShellCommands]:
    """Manage processes of the model; leaving the context kills all of them."""
    async with background_tasks() as tasks:
        shells = ShellCommands(sandbox, tasks)
        try:
            yield shells
        finally:
            with anyio.CancelScope(shield=True):
                await shells.end_all("the session ended")


WAIT_USUAL: Final = 30
QUIET_LONGEST: Final = 120.0
_WAIT_MAX: Final = 300
_SHOWN_CHARS_MAX: Final = 64_000
_WISHES: Final = {
    SandboxLevel.NETWORK: (PermissionScope.NETWORK, "run a command that reaches the network"),
    SandboxLevel.OPEN: (PermissionScope.OPEN, "run a command outside of the sandbox"),
}

_SPEC: Final = ToolSpec(
    name="shell",
    description=(
        "Run a command line in the project. It is shut in: it can change the project and $TMPDIR, "
        "and reaches no network; /tmp and $HOME are empty for every command. After `seconds` you "
        "get what it said so far and its id, and it goes on: wait for it, give it input, or kill "
        "it. Nothing runs longer than 10 minutes, and what a command starts in the background ends "
        "with it. Long output is shown by its beginning and end; recall shows the rest."
    ),
    parameters=fields(
        (),
        action=text(
            "What to do; run if it is not given.", of=("run", "wait", "input", "kill", "recall")
        ),
        command=text("For run: the command line."),
        id=text("For all but run: which process."),
        input=text("For input: what to write, with a newline if one is meant."),
        seconds=number("How long to wait at most.", least=1, most=_WAIT_MAX),
        keeps_input=claim("For run: whether it is to get input later; else its input is empty."),
        reach=text(
            "For run: how far it must reach. Anything but sandbox needs the person's permission.",
            of=tuple(SandboxLevel),
        ),
        why=text("With reach: why it is needed, for the person."),
        offset=number("For recall: from which byte of the output on."),
    ),
)


class _Given(msgspec.Struct, frozen=True):
    action: Literal["run", "wait", "input", "kill", "recall"] = "run"
    command: str = ""
    id: str = ""
    input: str = ""
    seconds: Annotated[int, Meta(ge=1, le=_WAIT_MAX)] = WAIT_USUAL
    keeps_input: bool = False
    reach: SandboxLevel = SandboxLevel.SANDBOX
    why: str = ""
    offset: Annotated[int, Meta(ge=0)] = 0


class ShellTool:
    """Runs commands, and supervises long-running ones."""

    spec = _SPEC
    only_reads = False

    def __init__(
        self, shells: ShellCommands, approvals: Permissions, *, quiet_longest: float = QUIET_LONGEST
    ) -> None:
        """Notify the person after `quiet_longest` seconds without output."""
        self._shells, self._approvals = shells, approvals
        self._quiet_longest = quiet_longest

    def title(self, arguments: dict[str, object]) -> str:
        asked = given(arguments, _Given)
        if asked.action != "run":
            return f"{asked.action.capitalize()} {single_line(asked.id)}"
        return single_line(asked.command)

    async def use(self, arguments: dict[str, object], context: ToolContext) -> ToolResult:
        """Run, poll, write to or kill a command; cancellation kills it with its descendants."""
        asked = given(arguments, _Given)
        if asked.action == "run":
            running = await self._started(asked, context)
        else:
            running = self._shells.find(asked.id)
        match asked.action:
            case "recall":
                return ToolResult(await running.recall(asked.offset))
            case "kill":
                await running.end("killed")
            case "input":
                await self._write(running, asked.input)
                await self._attend(running, asked.seconds, context)
            case _:
                await self._attend(running, asked.seconds, context)
        return _done(running)

    async def _started(self, asked: _Given, context: ToolContext) -> RunningCommand:
        if not asked.command.strip():
            raise ToolRefused(reason="say which command to run")
        if "\0" in asked.command:
            raise ToolRefused(reason="a command line cannot contain a NUL")
        if asked.reach in _WISHES:
            reach, does = _WISHES[asked.reach]
            wish = PermissionRequest(reach, does, (("command", asked.command),), why=asked.why)
            await self._approvals.require(wish, context)
        return await self._shells.start(asked.command, asked.reach, has_stdin=asked.keeps_input)

    async def _write(self, running: RunningCommand, words: str) -> None:
        if running.is_over:
            raise ToolRefused(reason=f"{running.name} has ended, and takes no input")
        await running.write(words.encode("utf-8", "replace"))

    async def _attend(self, running: RunningCommand, seconds: float, context: ToolContext) -> None:
        """Display output until the command exits or the time is over."""
        deadline = anyio.current_time() + seconds
        told_at = running.heard
        running.watcher = _Shown(context).take
        try:
            while not running.is_over and (left := deadline - anyio.current_time()) > 0:
                quiet = anyio.current_time() - max(running.heard, told_at)
                if quiet >= self._quiet_longest:
                    told_at = anyio.current_time()
                    context.show(f"(no output for {self._quiet_longest:g} seconds; it goes on)\n")
                    quiet = 0.0
                await running.wait(min(left, self._quiet_longest - quiet))
        except anyio.get_cancelled_exc_class():
            await running.end("cancelled")
            raise
        finally:
            running.watcher = None


class _Shown:
    """Display of output with a limit on the total length."""

    def __init__(self, context: ToolContext) -> None:
        self._desk = context
        self._left = _SHOWN_CHARS_MAX
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes) -> None:
        if self._left <= 0:
            return
        words = self._decode(data[: self._left])
        self._left -= len(words)
        self._desk.show(words if self._left > 0 else f"{words}\n… (more is not shown here)\n")


def _done(running: RunningCommand) -> ToolResult:
    """Return the result; deterministic, so that repeated calls can be recognized."""
    is_cut = running.window.left_out > 0
    said = running.window.take() or "(no output)"
    if running.is_over:
        head = running.note or f"exit status {running.status}"
    else:
        passed = anyio.current_time() - running.since
        head = f"still running after {passed:.0f} s, id {running.name}: wait for it, or kill it"
    if running.is_denied:
        head += "; the sandbox may have kept it from something"
    if is_cut:
        head += f"; recall shows what is left out of {running.name}"
    return ToolResult(f"{head}\n{said}", shown=said, status=running.status)
