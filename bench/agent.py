"""What a step of our own agent costs: a request, its answer, one tool, all of it on disk.

    python bench/agent.py [--json] [--steps N]

The model is a process of its own that speaks HTTP and server-sent events on loopback; each answer
calls for a tool, whose result is 1 KB. The host's journal is real, and synced before anything acts
on it. Processor time is that of the host's process alone, its writer thread included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from time import perf_counter, process_time, thread_time

import anyio
from alternating import on_one_core

from holdfast.agent import AgentConfig, BudgetLimits, HttpModels, Keys, Provider, load_prices
from holdfast.agent.history.tree import ConversationTree
from holdfast.agent.model import ModelChoice, ToolResult, ToolSpec
from holdfast.agent.ports import ToolContext
from holdfast.agent.providers.registry import Format
from holdfast.host.journal import SessionJournal
from holdfast.host.model import PromptQueued, SessionOpened
from holdfast.host.ports import DraftRevision
from holdfast.host.turns import SessionTurns
from holdfast.runners.native import NativeRunner
from holdfast.world import SystemClock, SystemDisk, SystemRandomSource, WriterThread

STEPS, LOOKS = 2_000, ((5, 25), (100, 200), (900, 1_000), (1_900, 2_000))
RESULT = "result " * 146  # 1 KB
COLUMNS = {"what": 44, "measured": 12, "target": 0}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class Marks:
    """A tool whose uses are counted, and the time that has passed at each."""

    spec = ToolSpec("mark", "Mark a step.", {"type": "object", "properties": {}})
    only_reads = False

    def __init__(self) -> None:
        self.times: list[float] = []
        self.blocked = {True: 0.0, False: 0.0}  # for how long at most, by whether it only begins

    def title(self, arguments: dict[str, object]) -> str:
        """What it does."""
        del arguments
        return "mark"

    async def use(self, arguments: dict[str, object], desk: ToolContext) -> ToolResult:
        """Note the time, and answer 1 KB."""
        del arguments, desk
        self.times.append(process_time())
        return ToolResult(f"{len(self.times)} {RESULT}")

    async def watch(self) -> None:
        """Note how late the loop is by its own work; a machine may have other things to do."""
        while True:
            before, used = perf_counter(), thread_time()
            await anyio.sleep(0.02)
            late = min(perf_counter() - before - 0.02, thread_time() - used)
            begins = not self.times
            self.blocked[begins] = max(self.blocked[begins], late)


class NoDraft:
    """A workshop in which nothing is ever changed."""

    async def prepare(self) -> None:
        """Nothing is to be done."""

    async def revise(self, cause: str) -> DraftRevision | None:
        """Nothing has changed."""
        del cause

    async def report(self, closed: object, made: object) -> str:
        """Nobody reads it."""
        del closed, made
        return ""


async def serve(steps: int) -> None:
    """Be the model: call for the tool in each answer but the last."""
    server = await asyncio.start_server(partial(answer, steps), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def answer(steps: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request on a connection."""
    number = 0
    with suppress(asyncio.IncompleteReadError, ConnectionError):  # the agent has hung up
        while head := await reader.readuntil(b"\r\n\r\n"):
            lines = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
            await reader.readexactly(int(lines[b"content-length"]))
            number += 1
            call = {
                "id": f"call_{number}",
                "function": {"name": "mark", "arguments": "{}"},
                "index": 0,
            }
            delta = {"tool_calls": [call]} if number <= steps else {"content": "Done."}
            reason = "tool_calls" if number <= steps else "stop"
            usage = {"prompt_tokens": 100, "completion_tokens": 10}
            events: tuple[dict[str, object], ...] = (
                {"choices": [{"index": 0, "delta": delta}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage},
            )
            body = b"".join(b"data: %b\n\n" % json.dumps(each).encode() for each in events)
            body += b"data: [DONE]\n\n"
            writer.write(HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
            await writer.drain()


async def stepped(root: Path, url: str) -> Marks:
    """Have a turn of so many steps taken, and its journal written."""
    marks = Marks()

    @asynccontextmanager
    async def kits() -> AsyncGenerator[AgentConfig]:
        models = HttpModels(
            {"loop": Provider("loop", Format.CHAT, url)},
            keys=Keys((), file=root / "keys.toml"),
            prices=load_prices(),
            clock=SystemClock(),
            chance=SystemRandomSource(),
        )
        async with models:
            yield AgentConfig(
                models=models,
                choice=ModelChoice("loop", "m"),
                tools={"mark": marks},
                system="You are measured.",
                budget=BudgetLimits(steps=None),
            )

    with WriterThread() as thread:
        book = SessionJournal.open(
            SystemDisk(), root / "journal.jsonl", name="s1", run=thread.start
        )
        await book.write(SessionOpened("s1", "/p", "d1", "native", 1))
        turns = SessionTurns(
            journal=book,
            runner=NativeRunner(kits),
            draft=NoDraft(),
            clock=SystemClock(),
            told=lambda _: None,
            troubled=lambda _: None,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turns.run)
            tasks.start_soon(marks.watch)
            await book.write(PromptQueued("c1", 1, "Go.", 1))
            book.notify()
            while book.session.turn < 1 or book.session.is_running:
                await book.changed()
            assert book.session.failure is None, book.session.failure
            tasks.cancel_scope.cancel()
        book.close()
    return marks


def reloaded(root: Path) -> tuple[int, float, float]:
    """How many messages there are, and what it takes to read them back and draw their line."""
    with WriterThread() as thread:
        book = SessionJournal.open(
            SystemDisk(), root / "journal.jsonl", name="s1", run=thread.start
        )
        best = whole = float("inf")
        messages = 0
        for _ in range(5):
            began = process_time()
            memos = [each.memo for each in book.remembered()]
            read = process_time()
            tree = ConversationTree()
            for memo in memos:
                tree.read(memo)
            messages = len(tree.line.said)
            ended = process_time()
            best, whole = min(best, ended - read), min(whole, ended - began)
        book.close()
    return messages, best, whole


def rows(root: Path, steps: int) -> list[dict[str, str]]:
    """Measure everything."""
    words = [sys.executable, __file__, "--serve", "--steps", str(steps)]
    model = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert model.stdout is not None
        url = f"http://127.0.0.1:{model.stdout.readline().strip()}/v1"
        marks = anyio.run(stepped, root, url)
    finally:
        model.kill()
        model.wait()
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    targets = {5: "≤ 1.5 ms", 1_900: "≤ 5 ms"}
    found: list[dict[str, str]] = []
    for first, last in LOOKS:
        if last <= len(marks.times):
            mean = (marks.times[last - 1] - marks.times[first - 1]) / (last - first) * 1000
            measured = f"{mean:.2f} ms"
            found.append(
                row(f"a step, CPU, steps {first} to {last}", measured, targets.get(first, ""))
            )
    messages, best, whole = reloaded(root)
    scale = 10_000 / messages
    return [
        *found,
        row("longest block of the loop, CPU", f"{marks.blocked[False] * 1000:.1f} ms", "≤ 20 ms"),
        row("the same, as it begins", f"{marks.blocked[True] * 1000:.1f} ms", "≤ 20 ms"),
        row("10,000 messages read back, CPU", f"{best * scale * 1000:.0f} ms", "≤ 50 ms"),
        row("the same, with the journal", f"{whole * scale * 1000:.0f} ms", ""),
        row("memory after all steps", f"{held:.0f} MiB", "≤ 60 MB"),
    ]


def row(what: str, measured: str, target: str) -> dict[str, str]:
    """One line of the table."""
    return {"what": what, "measured": measured, "target": target}


def main() -> None:
    """Measure, and print a table or JSON; or be the model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(given.steps))
        return
    on_one_core()
    root = Path(tempfile.mkdtemp(prefix="ab-", dir="/var/tmp"))
    try:
        found = rows(root, given.steps)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if given.json:
        print(json.dumps({"title": "Our own agent", "rows": found}))
        return
    for each in [dict.fromkeys(COLUMNS, "") | {name: name for name in COLUMNS}, *found]:
        print("  ".join(f"{each[name]:<{width}}" for name, width in COLUMNS.items()))


if __name__ == "__main__":
    main()
