"""The scripted agent's process.

It works in its current directory. The host controls it by JSON-RPC over stdin and stdout: requests
for turns, answers and interrupts; events are notifications.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import anyio
import msgspec
from anyio.abc import ByteReceiveStream, Process, TaskGroup

from holdfast.failures import Failure
from holdfast.nouns import RelativePath
from holdfast.rpc import Connection, ConnectionConfig, Handler, Service, StdioTransport
from holdfast.runners.bounded_text import BoundedText
from holdfast.runners.model import AnyEvent, Delta, DeltaKind, SessionKnown, TurnEnded, TurnEnding
from holdfast.runners.rehearsal.player import (
    Act,
    ActResult,
    Answer,
    AskQuestion,
    ChangeFile,
    EmitEvents,
    EmitOutput,
    ExitProcess,
    PauseFor,
    Play,
    RunCommand,
    play,
)
from holdfast.runners.rehearsal.script import (
    DeleteStep,
    EditStep,
    RunStep,
    Scenario,
    WriteStep,
    read_scenario,
)
from holdfast.world import OpenMode, PendingReplies, Root

EVENTS = "events"  # notification: a list of events
TURN = "turn"
ANSWER = "answer"
INTERRUPT = "interrupt"


class TurnParams(msgspec.Struct, frozen=True):
    """Play the turn of this number; events include its end."""

    number: int


class AnswerParams(msgspec.Struct, frozen=True):
    """The person's answer to a question."""

    question: str
    answer: str


class NoTurnParams(msgspec.Struct, frozen=True):
    """No parameters."""


class TurnAccepted(msgspec.Struct, frozen=True):
    """Whether the request was accepted."""

    taken: bool


_POUR_BYTES = 64 * 1024
_LINE = "All work and no play makes Jack a dull boy.\n"


class RehearsalAgent:
    """Plays turns of a scenario for the peer on stdin and stdout."""

    def __init__(self, scenario: Scenario, root: Root, tasks: TaskGroup) -> None:
        self._scenario = scenario
        self._root = root
        self._tasks = tasks
        self._running: anyio.CancelScope | None = None
        self._questions = PendingReplies()
        self._service = Service(
            {
                TURN: Handler(TurnParams, self._begin),
                ANSWER: Handler(AnswerParams, self._take_answer),
                INTERRUPT: Handler(NoTurnParams, self._interrupt),
            }
        )
        self._connection = Connection(StdioTransport(), ConnectionConfig(service=self._service))

    async def serve(self) -> None:
        """Serve requests until EOF."""
        async with self._connection as connection:
            await connection.wait_ended()
        self._tasks.cancel_scope.cancel()

    async def _begin(self, params: TurnParams) -> TurnAccepted:
        if self._running is not None:
            return TurnAccepted(False)
        self._running = anyio.CancelScope()
        self._tasks.start_soon(self._play, params.number)
        return TurnAccepted(True)

    async def _take_answer(self, params: AnswerParams) -> TurnAccepted:
        return TurnAccepted(self._questions.answer(params.question, params.answer))

    async def _interrupt(self, _: NoTurnParams) -> TurnAccepted:
        if self._running is None:
            return TurnAccepted(False)
        self._running.cancel()
        return TurnAccepted(True)

    async def _play(self, number: int) -> None:
        scope = self._running
        assert scope is not None
        with suppress(Failure):  # the peer has disconnected
            await self._tell((SessionKnown(f"{self._scenario.name}#{number + 1}"),))
            with scope:
                await self._act(play(self._scenario.turn(number), number))
            self._running = None
            if scope.cancelled_caught:
                await self._tell((TurnEnded(TurnEnding.INTERRUPTED),))

    async def _act(self, acts: Play) -> None:
        answer: Answer = None
        with suppress(StopIteration):
            while True:
                answer = await self._do(acts.send(answer))

    async def _do(self, act: Act) -> Answer:
        match act:
            case EmitEvents(events):
                await self._tell(events)
            case ChangeFile(step):
                return _changed(self._root, step)
            case RunCommand(item, step):
                return await self._execute(item, step)
            case EmitOutput(item, size):
                return await self._pour(item, size)
            case AskQuestion(asked):
                with self._questions.open(asked.question) as answer:
                    await self._tell((asked,))
                    return await answer.wait()
            case PauseFor(seconds):
                _freeze() if seconds is None else await anyio.sleep(seconds)
            case ExitProcess(status):
                _die(status)
        return None

    async def _tell(self, events: Sequence[AnyEvent]) -> None:
        await self._connection.notify(EVENTS, events)

    async def _execute(self, item: str, step: RunStep) -> ActResult:
        """Run a command in its own process group, killed at the end of the turn unless it stays."""
        process = await anyio.open_process(
            ["sh", "-c", step.run], stdin=None, stderr=-2, start_new_session=True
        )
        if step.stays:
            return ActResult(0, f"It goes on as process {process.pid}.")
        printed = BoundedText()
        try:
            assert process.stdout is not None
            await self._show(item, process.stdout, printed)
            status = await process.wait()
        finally:
            _kill_group(process)
        return ActResult(status, printed.text, printed.left_out)

    async def _show(self, item: str, output: ByteReceiveStream, printed: BoundedText) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for data in output:
            if text := decoder.decode(data):
                printed.feed(text)
                await self._tell((Delta(item, DeltaKind.OUTPUT, text),))

    async def _pour(self, item: str, size: int) -> ActResult:
        printed = BoundedText()
        lines = _LINE * (_POUR_BYTES // len(_LINE) + 1)
        while size > 0:
            text = lines[: min(size, _POUR_BYTES)]
            size -= len(text)
            printed.feed(text)
            await self._tell((Delta(item, DeltaKind.OUTPUT, text),))
        return ActResult(0, printed.text, printed.left_out)


def _changed(root: Root, step: WriteStep | EditStep | DeleteStep) -> ActResult:
    try:
        match step:
            case WriteStep(write, content, mode):
                path = RelativePath.from_text(write)
                if path.parent is not None:
                    root.make_directory(path.parent, parents=True)
                _put(root, path, content, mode)
            case EditStep(edit, old, new):
                path = RelativePath.from_text(edit)
                with root.open(path, OpenMode.READ) as file:
                    text = file.readall().decode()
                if text.count(old) != 1:
                    return ActResult(1, f"{old!r} stands there {text.count(old)} times")
                _put(root, path, text.replace(old, new), None)
            case DeleteStep(delete):
                root.remove(RelativePath.from_text(delete))
    except (Failure, UnicodeDecodeError) as error:
        return ActResult(1, str(error))
    return ActResult()


def _put(root: Root, path: RelativePath, text: str, mode: int | None) -> None:
    with root.open(path, OpenMode.REPLACE) as file:
        file.write(text.encode())
        if mode is not None:
            os.fchmod(file.fileno(), mode)


def _kill_group(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _freeze() -> NoReturn:
    """Block the process, including its event loop."""
    while True:
        signal.pause()


def _die(status: int) -> NoReturn:
    if status < 0:
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


async def _main(scenario: Scenario) -> None:
    with Root.at(".") as root:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(RehearsalAgent(scenario, root, tasks).serve)


def main() -> int:
    """Play the scenario given on the command line; return the exit status."""
    try:
        script = Path(sys.argv[1])
        anyio.run(_main, read_scenario(script.stem, script.read_text()))
    except Failure as failure:
        sys.stderr.write(f"{failure.user_message}\n")
        return failure.kind.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
