"""Much output in terminals: a command prints a million lines, in ours, in Codex and in Claude Code.

    python bench/terminal_peers.py [--json]

Each runs in a real pseudo-terminal of 80 columns. A scripted model on loopback has the others run
the command, a script ours. The processor time of a line is that of the turn beyond one in which a
single line is printed: of all processes of a terminal together (ours are terminal, host, agent,
server and keeper), without those that the command consists of; of ours also that of who draws. All
three show a few lines of the output; Claude Code tells of its first 30,000 characters. Of 100,000
lines the cost is lost in that of drawing what moves meanwhile, so there are a million.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.parts.codex_binary import CACHE, Unavailable, codex_home, install
from tests.parts.pty_screen import PtyScreen, on_screen

LINES = 1_000_000
OURS = (sys.executable, "-P", "-m", "holdfast.cli.main")
CLAUDE = "@anthropic-ai/claude-code@2.1.197"
INSTALL_LONGEST = 300.0
SETTLED = 1.5  # seconds after which a terminal takes Enter for a key, and not for a part of a paste
COLUMNS = {"terminal": 40, "CPU per line": 16, "against ours": 0}
TURNS = {"warm": 1, "few": 1, "many": LINES}  # the first one loads what the others need


class Model(BaseHTTPRequestHandler):
    """Has whoever asks run a command, and says that it is done when its output comes back."""

    protocol_version = "HTTP/1.1"
    turn = "warm"  # which of the turns is taken now

    def do_POST(self) -> None:
        """Answer a request in the format in which it came."""
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        command = f"seq 1 {TURNS[Model.turn]}"
        events = _responses if self.path.endswith("/responses") else _messages
        body = "".join(
            f"event: {each['type']}\ndata: {json.dumps(each)}\n\n"
            for each in events(asked, command, f"done-{Model.turn}")
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _responses(asked: dict[str, list[dict[str, object]]], command: str, done: str) -> list[dict]:
    """As Codex wants it."""
    names = {tool.get("name") for tool in asked.get("tools", [])}
    item: dict[str, object] = {"type": "message", "role": "assistant", "id": "m"}
    item["content"] = [{"type": "output_text", "text": done}]
    if "exec_command" in names and not str(asked["input"][-1]["type"]).endswith("_output"):
        item = {"type": "function_call", "id": "f", "call_id": f"c{len(asked['input'])}"}
        item |= {"name": "exec_command", "arguments": json.dumps({"cmd": command})}
    usage = {"input_tokens": 9, "output_tokens": 9, "total_tokens": 18}
    return [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "r", "usage": usage}},
    ]


def _messages(asked: dict[str, list[dict[str, object]]], command: str, done: str) -> list[dict]:
    """As Claude Code wants it."""
    names = {tool.get("name") for tool in asked.get("tools", [])}
    block: dict[str, object] = {"type": "text", "text": ""}
    delta, stop = {"type": "text_delta", "text": done}, "end_turn"
    if "Bash" in names and "tool_result" not in json.dumps(asked["messages"][-1]):
        block = {"type": "tool_use", "name": "Bash", "input": {}}
        block["id"] = f"toolu_{len(asked['messages'])}"
        given = json.dumps({"command": command, "description": "Count"})
        delta, stop = {"type": "input_json_delta", "partial_json": given}, "tool_use"
    message = {"id": "m", "type": "message", "role": "assistant", "model": "scripted"}
    message |= {"content": [], "stop_reason": None, "usage": {"input_tokens": 9}}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


@dataclass(frozen=True)
class Peer:
    """A terminal to start, what it shows when one can type, and whose time counts."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    ready: str
    used: Callable[[PtyScreen], tuple[float, ...]]


def cost(peer: Peer, place: Path) -> list[float]:
    """Seconds of a processor for each line, of each of those whose time counts."""
    place.mkdir(exist_ok=True)
    taken: dict[str, list[float]] = {}
    with on_screen(peer.argv, cwd=place, env=peer.env) as screen:
        for turn in TURNS:
            Model.turn = turn
            screen.shows(peer.ready)
            screen.type(turn)
            _settle(screen)
            before = peer.used(screen)
            screen.type("\r")
            screen.sees(f"done-{turn}")
            _settle(screen)
            taken[turn] = [b - a for a, b in zip(before, peer.used(screen), strict=True)]
    return [(many - few) / LINES for few, many in zip(taken["few"], taken["many"], strict=True)]


def _settle(screen: PtyScreen) -> None:
    end = time.monotonic() + SETTLED
    screen.until(lambda: time.monotonic() > end)


def processor_seconds(pid: int) -> float:
    """What a process has used so far, all of its threads together."""
    with suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0  # it is gone


def everybody(mark: str) -> float:
    """What all processes have used that have this in their environment."""
    return sum(processor_seconds(pid) for pid in _processes() if mark.encode() in _environment(pid))


def ours(home: Path) -> Peer:
    """Our own terminal, with an agent that follows a script."""
    steps = (f'{{run = "seq 1 {n}"}}, {{say = "done-{turn}"}}' for turn, n in TURNS.items())
    script = home / "script.toml"
    script.write_text("".join(f"[[turn]]\nstep = [{each}]\n" for each in steps))

    def used(screen: PtyScreen) -> tuple[float, ...]:
        parent = screen.process.pid
        draws = int(Path(f"/proc/{parent}/task/{parent}/children").read_text().split()[0])
        return processor_seconds(draws), everybody(f"HOLDFAST_HOME={home}")

    env = {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(home)}
    return Peer((*OURS, "--scenario", str(script)), env, "idle", used)


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return []


def codex(base: Path, url: str) -> Peer:
    """The real Codex, in a home that speaks only with the scripted model."""
    env = codex_home(base, f"{url}/v1", model="scripted")
    trust = f'\n[projects."{base / "codex"}"]\ntrust_level = "trusted"\n'
    with (Path(env["CODEX_HOME"]) / "config.toml").open("a") as config:
        config.write(trust)
    mark = f"CODEX_HOME={env['CODEX_HOME']}"
    return Peer((str(install()),), env, "scripted default", lambda _: (everybody(mark),))


def claude(base: Path, url: str) -> Peer:
    """The real Claude Code, likewise."""
    prefix = CACHE.parent / CLAUDE.rpartition("/")[2]
    (program,) = _claude_programs(prefix) or (_npm_install(prefix),)
    home, key = base / "claude-home", f"sk-ant-{'x' * 40}"
    (home / ".claude").mkdir(parents=True)
    known = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settled = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(base / "claude"): known},
    }
    (home / ".claude.json").write_text(json.dumps(settled))
    allowed = {"permissions": {"allow": ["Bash"]}}
    (home / ".claude/settings.json").write_text(json.dumps(allowed))
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": key, "DISABLE_AUTOUPDATER": "1"}
    env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    return Peer((str(program),), env, "? for shortcuts", lambda _: (everybody(f"HOME={home}"),))


def _claude_programs(prefix: Path) -> list[Path]:
    return list(prefix.glob("node_modules/@anthropic-ai/claude-code-*/claude"))[:1]


def _npm_install(prefix: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not installed")
    quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"]
    command = [npm, "install", "--prefix", str(prefix), *quiet, CLAUDE]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(command, capture_output=True, check=False, timeout=INSTALL_LONGEST)
    programs = _claude_programs(prefix)
    if not programs:
        raise Unavailable(f"npm cannot install {CLAUDE}")
    return programs[0]


@contextmanager
def modelled() -> Generator[str]:
    """The address of a model that follows the script."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def measured() -> list[dict[str, str]]:
    """A row for each; one that cannot be had says why."""
    with tempfile.TemporaryDirectory(prefix="hf-") as made, modelled() as url:
        base = Path(made).resolve()
        try:
            draws, whole = cost(ours(base), base / "project")
        finally:
            stop = (*OURS, "stop", "--all", "--state", str(base / "state"), "--yes")
            env = {**os.environ, "HOLDFAST_HOME": str(base)}
            subprocess.run(stop, env=env, capture_output=True, check=False)
        rows = [_row("ours, the process that draws", draws, whole)]
        rows.append(_row("ours, all processes", whole, whole))
        for name, make in (("codex", codex), ("claude", claude)):
            try:
                (line,) = cost(make(base, url), base / name)
                rows.append(_row(name, line, whole))
            except (Unavailable, AssertionError) as why:
                rows.append(_row(name, None, whole, str(why).partition("\n")[0]))
    return rows


def _row(name: str, line: float | None, ours: float, why: str = "") -> dict[str, str]:
    known = why if line is None else f"{line * 1e9:.0f} ns"
    ratio = "" if line is None else f"{line / ours:.2f}"
    return dict(zip(COLUMNS, (name, known, ratio), strict=True))


def main() -> None:
    """Measure, and print a table, or rows for a program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    is_json = parser.parse_args().json
    rows = measured()
    if is_json:
        print(json.dumps({"title": "Much output in terminals", "rows": rows}))
        return
    for row in [{name: name for name in COLUMNS}, *rows]:
        print("".join(f"{row[name]:<{width}}" for name, width in COLUMNS.items()).rstrip())


if __name__ == "__main__":
    main()
