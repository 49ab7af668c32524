"""Let a model run commands: in the sandbox, and further out only with leave."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import Annotated, Final, Literal

import anyio
import msgspec
from msgspec import Meta

from holdfast.agent.approving import Approvals
from holdfast.agent.core.arguments import claim, fields, given, number, text
from holdfast.agent.core.leave import Reach, Wish, in_a_line
from holdfast.agent.failures import ToolRefused
from holdfast.agent.ground import Freedom
from holdfast.agent.model import Done, ToolSpec
from holdfast.agent.ports import Desk
from holdfast.agent.running import Running, Shells

WAIT_USUAL: Final = 30
QUIET_LONGEST: Final = 120.0
_WAIT_MAX: Final = 300
_SHOWN_CHARS_MAX: Final = 64_000
_WISHES: Final = {
    Freedom.NETWORK: (Reach.NETWORK, "run a command that reaches the network"),
    Freedom.OPEN: (Reach.OPEN, "run a command outside of the sandbox"),
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
            "For run: how far it must reach. Anything but sandbox needs the person's leave.",
            of=tuple(Freedom),
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
    reach: Freedom = Freedom.SANDBOX
    why: str = ""
    offset: Annotated[int, Meta(ge=0)] = 0


class Shell:
    """Runs commands, and keeps an eye on those that take long."""

    spec = _SPEC
    only_reads = False

    def __init__(
        self, shells: Shells, approvals: Approvals, *, quiet_longest: float = QUIET_LONGEST
    ) -> None:
        """After `quiet_longest` seconds without output, the person is told of it."""
        self._shells, self._approvals = shells, approvals
        self._quiet_longest = quiet_longest

    def title(self, arguments: dict[str, object]) -> str:
        """What a call does, in a line for the person."""
        asked = given(arguments, _Given)
        if asked.action != "run":
            return f"{asked.action.capitalize()} {in_a_line(asked.id)}"
        return in_a_line(asked.command)

    async def use(self, arguments: dict[str, object], desk: Desk) -> Done:
        """Do it; cancelled, the process that it is about is killed with all that it started."""
        asked = given(arguments, _Given)
        if asked.action == "run":
            running = await self._started(asked, desk)
        else:
            running = self._shells.find(asked.id)
        match asked.action:
            case "recall":
                return Done(await running.recall(asked.offset))
            case "kill":
                await running.end("killed")
            case "input":
                await self._write(running, asked.input)
                await self._attend(running, asked.seconds, desk)
            case _:
                await self._attend(running, asked.seconds, desk)
        return _done(running)

    async def _started(self, asked: _Given, desk: Desk) -> Running:
        if not asked.command.strip():
            raise ToolRefused(reason="say which command to run")
        if "\0" in asked.command:
            raise ToolRefused(reason="a command line cannot contain a NUL")
        if asked.reach in _WISHES:
            reach, does = _WISHES[asked.reach]
            wish = Wish(reach, does, (("command", asked.command),), why=asked.why)
            await self._approvals.require(wish, desk)
        return await self._shells.start(asked.command, asked.reach, has_stdin=asked.keeps_input)

    async def _write(self, running: Running, words: str) -> None:
        if running.is_over:
            raise ToolRefused(reason=f"{running.name} has ended, and takes no input")
        await running.write(words.encode("utf-8", "replace"))

    async def _attend(self, running: Running, seconds: float, desk: Desk) -> None:
        """Show what comes until it is over or the time is."""
        deadline = anyio.current_time() + seconds
        told_at = running.heard
        running.watcher = _Shown(desk).take
        try:
            while not running.is_over and (left := deadline - anyio.current_time()) > 0:
                quiet = anyio.current_time() - max(running.heard, told_at)
                if quiet >= self._quiet_longest:
                    told_at = anyio.current_time()
                    desk.show(f"(no output for {self._quiet_longest:g} seconds; it goes on)\n")
                    quiet = 0.0
                await running.wait(min(left, self._quiet_longest - quiet))
        except anyio.get_cancelled_exc_class():
            await running.end("cancelled")
            raise
        finally:
            running.watcher = None


class _Shown:
    """What a person is shown of output as it comes: the beginning of it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._left = _SHOWN_CHARS_MAX
        self._decode = getincrementaldecoder("utf-8")("replace").decode

    def take(self, data: bytes) -> None:
        if self._left <= 0:
            return
        words = self._decode(data[: self._left])
        self._left -= len(words)
        self._desk.show(words if self._left > 0 else f"{words}\n… (more is not shown here)\n")


def _done(running: Running) -> Done:
    """What came of it; of the same command that ends in the same way, always the same words."""
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
    return Done(f"{head}\n{said}", shown=said, status=running.status)
