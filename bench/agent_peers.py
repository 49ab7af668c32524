"""Our own agent beside those of others, in one run: the processor time of a step.

    python bench/agent_peers.py [--json]

One scripted model on loopback answers all of them; each answer calls for a tool whose result is
1 KB. At every request it reads how much processor time the asking process has used so far, its
threads included, and those that it starts not. Those of others get a conversation of 2,000 steps
ready-made; ours takes every step, and syncs each to the disk. All of it takes less than two
minutes, however slow the machine: who is not done by then is told with the step that was reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL

import agent
import anyio
import official
from alternating import on_one_core

HERE = Path(__file__).parent
PLACE, LOCK = HERE.parent / ".cache" / "bench-agents", HERE / "peers" / "agents.lock"
EARLY, LATE, BEFORE = (5, 25), (2, 6), 2_000
WHOLE_LONGEST = 105.0  # seconds for everybody together, once they are installed
OURS_WEIGHT = 2.5  # ours takes every one of 2,000 steps
KEEPS = {
    "mini-swe-agent": "a file, whole after each step",
    "pydantic-ai": "nothing",
    "LangGraph": "SqliteSaver, each step",
}
COLUMNS = {"agent": 22, "keeps": 32, "steps 5 to 25": 14, "2,000 steps later": 24, "memory": 0}
SHELL = json.dumps({"cmd": "head -c 1024 /dev/zero | tr '\\0' x"})
CALLS = {"mini-swe-agent": ("bash", '{"command": "ls"}'), "codex exec": ("exec_command", SHELL)}


@dataclass
class Model:
    """Answers everybody, and notes what the one who is watched has used at each request."""

    tool: str
    arguments: str
    pid: int = 0
    times: list[float] = field(default_factory=list[float])

    async def attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request on a connection."""
        with suppress(asyncio.IncompleteReadError, OSError):  # it has hung up, or is gone
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = [line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if line]
                size = int(dict(lines).get(b"content-length", b"0"))
                body = await reader.readexactly(size)
                if head.startswith(b"POST"):
                    self.times.append(used(self.pid))
                sort, answer = self._answer(head.split(b" ", 2)[1], body)
                told = f"content-type: {sort}\r\ncontent-length: {len(answer)}"
                writer.write(f"HTTP/1.1 200 OK\r\n{told}\r\n\r\n".encode() + answer)
                await writer.drain()
        writer.close()

    def _answer(self, path: bytes, body: bytes) -> tuple[str, bytes]:
        number = len(self.times)
        if path.endswith(b"/responses"):
            item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}"}
            item |= {"name": self.tool, "arguments": self.arguments}
            done = {"type": "response.output_item.done", "output_index": 0, "item": item}
            usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
            end = {"type": "response.completed", "response": {"id": "r", "usage": usage}}
            parts = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in (done, end)]
            return "text/event-stream", "".join(parts).encode()
        function = {"name": self.tool, "arguments": self.arguments}
        call = {"id": f"c{number}", "type": "function", "function": function, "index": 0}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "tool_calls"}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        whole = {"id": "x", "created": 1, "model": "gpt-4o", "usage": usage}
        if b'"stream":true' in body or b'"stream": true' in body:
            chunk = whole | {
                "object": "chat.completion.chunk",
                "choices": [choice | {"delta": said}],
            }
            return "text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        answer = whole | {"object": "chat.completion", "choices": [choice | {"message": said}]}
        return "application/json", json.dumps(answer).encode()


def used(pid: int) -> float:
    """The seconds of processor time that a process has used, all of its threads together."""
    return time.clock_gettime((~pid << 3) | 2)


class Patience:
    """The time that is left, shared out among all who are still to be watched."""

    def __init__(self, *weights: float) -> None:
        self._weights = list(weights)
        self._end = time.monotonic() + WHOLE_LONGEST

    def share(self) -> float:
        """How many seconds the next one may take; whoever was quick leaves the others more."""
        whole = sum(self._weights)
        return max(0.0, self._end - time.monotonic()) * self._weights.pop(0) / whole


@dataclass(frozen=True)
class Watched:
    """What was seen of one agent."""

    times: Sequence[float]
    mebibytes: float
    complaint: str

    def step(self, first: int, last: int, *, before: int = 0) -> str:
        """The mean of some steps; if they were not reached, of the last ones that were."""
        if len(self.times) < 3:
            return self.complaint
        beyond = min(last, len(self.times) - 1)
        first = min(first, max(1, beyond - 20))
        mean = (self.times[beyond] - self.times[first]) / (beyond - first) * 1000
        return f"{mean:.2f} ms" + ("" if beyond == last else f" at step {before + beyond:,}")


async def watched(
    name: str, command: Sequence[str], root: Path, env: Mapping[str, str], most: tuple[int, float]
) -> Watched:
    """Let an agent run until so many steps were taken, or so many seconds have passed."""
    steps, longest = most
    model = Model(*CALLS.get(name, ("mark", "{}")))
    server = await asyncio.start_server(model.attend, "127.0.0.1", 0, limit=1 << 26)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    if name == "codex exec":
        from tests.parts.codex_binary import codex_home

        env = codex_home(root / "home", url, idle_ms=60_000)
    words = [word.replace("URL", url) for word in command]
    with (root / "complaints").open("w+") as complaints:
        process = await asyncio.create_subprocess_exec(
            *words, cwd=root, env=env, stdin=DEVNULL, stdout=DEVNULL, stderr=complaints
        )
        model.pid = process.pid
        deadline = time.monotonic() + longest
        while process.returncode is None and len(model.times) <= steps:
            if time.monotonic() >= deadline:
                break
            await asyncio.sleep(0.05)
        held, complaint = 0.0, f"no 3 steps in {longest:.0f} s"
        if process.returncode is None:
            held = peak(process.pid)
            process.kill()
        else:
            complaints.seek(0)
            complaint = f"it did not run: {complaints.read().strip().rpartition(chr(10))[2]}"
        await process.wait()
    server.close()
    return Watched(model.times, held, complaint)


def peak(pid: int) -> float:
    """The most memory that a process ever held, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def row(name: str, keeps: str, early: str, late: str, held: float) -> dict[str, str]:
    """One line of the table."""
    return dict(zip(COLUMNS, (name, keeps, early, late, f"{held:.0f} MiB"), strict=True))


def fresh(root: Path, name: str) -> Path:
    """A directory for one run."""
    return Path(tempfile.mkdtemp(prefix=f"{name.split('-')[0].split()[0]}-", dir=root))


async def rows(root: Path) -> list[dict[str, str]]:
    """Watch everybody, one after the other."""
    python = str(official.installed(PLACE, LOCK))
    patience = Patience(OURS_WEIGHT, *(1.0 for _ in KEEPS for _ in "01"), 1.0)
    place = fresh(root, "ours")
    command = [sys.executable, __file__, "--ours", "URL", str(place)]
    ours = await watched("holdfast", command, place, os.environ, (BEFORE, patience.share()))
    found = [
        row("holdfast", "a journal, synced", ours.step(*EARLY), ours.step(BEFORE - 100, BEFORE),
            ours.mebibytes)
    ]  # fmt: skip
    for name, keeps in KEEPS.items():
        seen: list[Watched] = []
        for before, last in ((0, EARLY[1]), (BEFORE, LATE[1])):
            place = fresh(root, name)
            command = [python, "-m", "peers.agents", name, "URL", str(place), str(before)]
            env = {**os.environ, "PYTHONPATH": str(HERE), "HOME": str(place)}
            env |= {"MSWEA_SILENT_STARTUP": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
            seen.append(await watched(name, command, place, env, (last, patience.share())))
        early, late = seen
        found.append(
            row(name, keeps, early.step(*EARLY), late.step(*LATE, before=BEFORE), late.mebibytes)
        )
    return [*found, await codex(root, patience.share())]


async def codex(root: Path, longest: float) -> dict[str, str]:
    """Watch the real one; its conversation cannot be made ready."""
    sys.path.append(str(HERE.parent))
    from tests.parts.codex_binary import Unavailable, install

    name, keeps = "codex exec", "a rollout, not synced"
    try:
        binary = str(install())
    except Unavailable as missing:
        return row(name, keeps, f"missing: {missing}", "", 0.0)
    place = fresh(root, name)
    command = [binary, "exec", "--json", "--skip-git-repo-check", "go"]
    seen = await watched(name, command, place, {}, (BEFORE, longest))
    return row(name, keeps, seen.step(*EARLY), seen.step(BEFORE - 100, BEFORE), seen.mebibytes)


def main() -> None:
    """Watch, and print a table or JSON; or be ours."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ours", nargs=2)
    given = parser.parse_args()
    if given.ours is not None:
        anyio.run(agent.stepped, Path(given.ours[1]), given.ours[0])
        return
    on_one_core()
    root = Path(tempfile.mkdtemp(prefix="ap-", dir="/var/tmp"))
    try:
        found = asyncio.run(rows(root))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if given.json:
        load = f"on a machine with a load of {os.getloadavg()[1]:.0f}"
        title = f"Our own agent and others: processor time of a step, {load}"
        print(json.dumps({"title": title, "rows": found}))
        return
    for each in [{name: name for name in COLUMNS}, *found]:
        print("  ".join(f"{each[name]:<{width}}" for name, width in COLUMNS.items()))


if __name__ == "__main__":
    main()
