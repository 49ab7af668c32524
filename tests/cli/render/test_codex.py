"""What a person sees of a turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.model import Json
from holdfast.cli.render.codex import Ended, Noted, Piece, Said, TurnPage, script_of
from holdfast.cli.render.style import FINE, Look

LOOK = Look(40, is_coloured=False, signs=FINE)
COMMAND: dict[str, Json] = {"type": "commandExecution", "command": "/bin/bash -lc 'make test'"}
CHANGE: Json = {"path": "/p/src/a.py", "kind": {"type": "update"}, "diff": "+a"}


def begun(item: Json) -> tuple[str, Json]:
    return "item/started", {"item": item}


def done(item: Json) -> tuple[str, Json]:
    return "item/completed", {"item": item}


def delta(text: str, item: str = "m") -> tuple[str, Json]:
    return "item/agentMessage/delta", {"itemId": item, "delta": text}


def message(text: str, item: str = "m") -> tuple[str, Json]:
    return done({"type": "agentMessage", "id": item, "text": text})


def shown(*events: tuple[str, Json]) -> list[Piece]:
    page = TurnPage(LOOK, cwd="/p")
    return [piece for method, params in events for piece in page.take(method, params)]


def said(*events: tuple[str, Json]) -> str:
    return "".join(piece.text for piece in shown(*events) if isinstance(piece, Said))


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (begun(COMMAND), "$ make test"),
        (begun({**COMMAND, "command": "a\nb\x1b"}), "$ a\\nb\\x1b"),
        (begun({**COMMAND, "command": "x" * 50}), f"$ {'x' * 35}…"),
        (done({**COMMAND, "status": "failed", "exitCode": 3}), "✗ exit 3: make test"),
        (done({**COMMAND, "status": "failed"}), "✗ not run: make test"),
        (done({**COMMAND, "status": "declined"}), "! not run: make test"),
        (done({**COMMAND, "status": "completed", "durationMs": 12345}), "✓ 12 s: make test"),
        (
            done({"type": "fileChange", "status": "completed", "changes": [CHANGE]}),
            "✓ changed src/a.py",
        ),
        (
            done({"type": "fileChange", "status": "declined", "changes": [CHANGE]}),
            "! not changed (declined): src/a.py",
        ),
        (begun({"type": "mcpToolCall", "server": "s", "tool": "t"}), "→ s: t"),
        (
            done({"type": "mcpToolCall", "server": "s", "tool": "t", "status": "failed"}),
            "✗ failed: s: t",
        ),
        (begun({"type": "webSearch", "query": "q"}), "→ web search: q"),
        (begun({"type": "contextCompaction"}), "! the conversation is made shorter, s…"),
        (("error", {"willRetry": True, "error": {"message": "1/2"}}), "! 1/2"),
        (
            ("error", {"willRetry": True, "error": {"message": "1/2", "additionalDetails": "x"}}),
            "! 1/2 (x)",
        ),
        (("warning", {"message": "careful"}), "! careful"),
        (("model/rerouted", {"fromModel": "a", "toModel": "b"}), "! the model is now b, not a"),
    ],
)
def test_what_happens_is_one_line(event: tuple[str, Json], line: str) -> None:
    assert shown(event) == [Noted(f"  {line}")]


@pytest.mark.parametrize(
    "event",
    [
        done({**COMMAND, "status": "completed", "durationMs": 100}),
        done({**COMMAND, "status": "completed"}),
        begun({"type": "userMessage"}),
        begun({"type": "new in a later version", "text": "\x1b"}),
        begun(["not", "an", "item"]),
        done({"type": "fileChange", "status": "completed", "changes": ["odd", {"path": 7}]}),
        ("error", {"willRetry": False, "error": {"message": "it ends the turn, and says so"}}),
        ("item/agentMessage/delta", {"delta": 7}),
        ("thread/status/changed", {}),
        ("turn/started", None),
    ],
)
def test_what_nobody_needs_to_see_is_not_shown(event: tuple[str, Json]) -> None:
    assert shown(event) == []


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([delta("Hel"), delta("lo"), message("Hello")], "Hello\n"),
        ([message("Hello")], "Hello\n"),
        ([delta("Hel"), message("Hello\n")], "Hello\n"),
        ([delta("Hello\n"), message("Hello\n")], "Hello\n"),
        ([delta("lo"), message("Hello")], "lo\nHello\n"),
        ([delta("A"), message("A"), delta("B", "n"), message("B", "n")], "A\nB\n"),
        ([delta("\x1b["), delta("1m"), message("\x1b[1m")], "\\x1b[1m\n"),
        ([message("")], ""),
    ],
)
def test_every_message_is_shown_whole(events: list[tuple[str, Json]], text: str) -> None:
    assert said(*events) == text


@given(st.lists(st.text("ab\n\x1b", min_size=1), min_size=1), st.data())
def test_whatever_deltas_are_missing_the_message_is_shown(
    chunks: list[str], data: st.DataObject
) -> None:
    text = "".join(chunks)
    kept = [chunk for chunk in chunks if data.draw(st.booleans())]
    page = said(*map(delta, kept), message(text))

    assert page.removesuffix("\n").endswith(text.replace("\x1b", "\\x1b").removesuffix("\n"))


def test_a_turn_leaves_no_line_open() -> None:
    assert shown(delta("half"), ("turn/completed", {"turn": {}})) == [Said("half"), Ended()]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("/bin/bash -lc 'echo hi'", "echo hi"),
        ("bash -lc ls", "ls"),
        ("git commit -lc x", "git commit -lc x"),
        ("echo 'unbalanced", "echo 'unbalanced"),
    ],
)
def test_the_shell_around_a_script_is_not_shown(command: str, script: str) -> None:
    assert script_of(command) == script
