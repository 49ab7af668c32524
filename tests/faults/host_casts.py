"""The agents of the matrix: what each needs to play the same piece, and how it is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.parts.codex_binary import codex_binary, codex_home
from tests.parts.model_acts import Call, Reply, Say, run
from tests.parts.model_server import ModelRequest

LONG = "And so on. " * 1000  # more than fits into what a file has left of its last page
LEFT_BEHIND = "sleep 300"  # the command that a tool leaves running
HELLO, GO, AGAIN = "hello", "go", "again"
ASKED = "ask"  # the call that needs somebody's leave


@dataclass(frozen=True, slots=True)
class Piece:
    """What is played: `hello` is done at once, `go` comes into a state, `again` is done at once.

    In its state it stays so many seconds, if nobody ends it.
    """

    state: str
    stay: float

    @property
    def in_tool(self) -> str:
        """A tool that leaves a process behind, and takes its time."""
        background = f"setsid {LEFT_BEHIND} >/dev/null 2>&1 &"
        return f"{background} echo begun; sleep {self.stay}; echo x > over"


@dataclass(frozen=True, slots=True)
class Played:
    """The words of `holdfast ask` that begin it, and what the environment must hold."""

    words: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Cast:
    """One runner: how it is set up with a home and a model, and how it runs a command.

    `process` is a word of its process's command; empty, it has none of its own.
    """

    process: str
    set_up: Callable[[Path, str, Piece], Played]
    use: Callable[[str, str], Call]


def _rehearsal(home: Path, _: str, piece: Piece) -> Played:
    states: dict[str, list[dict[str, object]]] = {
        "streaming": [{"say": "One."}, {"wait": piece.stay}],
        "in a tool": [{"run": piece.in_tool}],
        "approval pending": [{"ask": "May I?", "approval": True}],
    }
    first = [{"write": "hello.txt", "content": "hello\n"}, {"say": "Hello."}]
    before = [{"write": "before.txt", "content": "before\n"}, {"think": LONG}]
    turns = [
        first,
        [*before, *states.get(piece.state, []), {"say": f"Two. {LONG}"}],
        [{"write": "after.txt", "content": "after\n"}, {"say": "Here."}],
    ]
    path = home / "piece.json"
    path.write_text(json.dumps({"turn": [{"step": steps} for steps in turns]}))
    return Played(("--runner", "rehearsal", "--scenario", str(path)), {})


def _codex(home: Path, model: str, _: Piece) -> Played:
    found = codex_home(home / "c", model, approval_policy="on-request", idle_ms=120_000)
    found["HOLDFAST_CODEX"] = str(codex_binary())
    rules = home / "c" / "codex-home" / "rules"
    rules.mkdir()
    (rules / "default.rules").write_text('prefix_rule(pattern=["touch"], decision="prompt")\n')
    return Played(("--runner", "codex", "--consent"), found)


def _native(home: Path, model: str, _: Piece) -> Played:
    config = home / "config"
    config.mkdir(mode=0o700)
    (config / "providers.toml").write_text(f'[there]\nformat = "responses"\nurl = "{model}"\n')
    return Played(("--runner", "native", "--model", "there/some-model", "--consent"), {})


def _exec_command(command: str, call_id: str) -> Call:
    return run(command, call_id=call_id, yield_time_ms=30_000)


def _shell(command: str, call_id: str) -> Call:
    reach = "open" if call_id == ASKED else "sandbox"
    return Call("shell", {"command": command, "seconds": 60, "reach": reach}, call_id)


CASTS = {
    "rehearsal": Cast("holdfast.runners.rehearsal.process", _rehearsal, _exec_command),
    "codex": Cast("app-server", _codex, _exec_command),
    "native": Cast("", _native, _shell),
}


def reply(runner: str, piece: Piece) -> Callable[[ModelRequest], Reply]:
    """What a model says, by what it was last asked for and which tools have answered."""
    use = CASTS[runner].use

    def choose(request: ModelRequest) -> Reply:
        done, asked = request.tool_outputs, request.texts
        if AGAIN in asked:
            after = use("echo after > after.txt", "after")
            return [Say("Here.")] if "after" in done else [after]
        if GO not in asked:
            hello = use("cat readme.txt; echo hello > hello.txt", "hello")
            return [Say("Hello.")] if "hello" in done else [hello]
        if "before" not in done:
            return [use("echo before > before.txt", "before")]
        return _in_state(piece, done, use)

    return choose


def _in_state(piece: Piece, done: dict[str, object], use: Callable[[str, str], Call]) -> Reply:
    match piece.state:
        case "in a tool" if "tool" not in done:
            return [use(piece.in_tool, "tool")]
        case "streaming":
            return [Say(f"One. {LONG}", deltas=30, pause=piece.stay / 30)]
        case "approval pending" if ASKED not in done:
            return [use("touch asked.txt", ASKED)]
        case _:
            return [Say(f"Two. {LONG}")]
