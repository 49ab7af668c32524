"""Lines that Codex writes, of this version and of older ones."""

from __future__ import annotations

import json

import msgspec
import pytest

from holdfast.cli.codex_rollout import about, steps
from holdfast.cli.foreign_transcripts import About, Asked, Did, Over, Step
from holdfast.runners.model import (
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
)

AT = "1970-01-01T00:00:01Z"


def line(kind: str, **payload: object) -> bytes:
    return json.dumps({"timestamp": AT, "type": kind, "payload": payload}).encode()


def event(kind: str, **payload: object) -> bytes:
    return line("event_msg", type=kind, **payload)


def item(kind: str, **payload: object) -> bytes:
    return line("response_item", type=kind, **payload)


PATCH = "*** Begin Patch\n*** End Patch\n"
EXITED = "Chunk ID: 0b\nProcess exited with code 2\nOutput:\nno\n"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (event("user_message", message="Go"), [Asked("Go", 1000)]),
        (
            event("item_completed", item={"type": "UserMessage", "content": [{"text": "Go"}]}),
            [Asked("Go", 1000)],
        ),
        (event("item_completed", item={"type": "FileChange", "content": 7}), []),
        (event("task_complete"), [Over(TurnEnding.COMPLETED, 1000)]),
        (event("turn_aborted", reason="interrupted"), [Over(TurnEnding.INTERRUPTED, 1000)]),
        (event("token_count", info=None), []),
        (
            item("message", role="assistant", id="m", content=[{"text": "a"}, {"text": "b"}]),
            [Did(TextCompleted("m", "a\nb"), 1000)],
        ),
        (item("message", role="user", content=[{"text": "<environment_context>"}]), []),
        (
            item("reasoning", summary=[{"type": "summary_text", "text": "Hm."}], content=None),
            [Did(ThinkingCompleted("", "Hm."), 1000)],
        ),
        (item("reasoning", summary=[], encrypted_content="x"), []),
        (
            item("function_call", name="exec_command", arguments='{"cmd": "ls"}', call_id="c"),
            [Did(ToolStarted("c", "exec_command", "ls", {"cmd": "ls"}), 1000)],
        ),
        (
            item("function_call", name="shell", arguments='{"command": ["ls", "-l"]}', call_id="c"),
            [Did(ToolStarted("c", "shell", "ls -l", {"command": ["ls", "-l"]}), 1000)],
        ),
        (
            item("custom_tool_call", name="apply_patch", input=PATCH, call_id="c"),
            [Did(ToolStarted("c", "apply_patch", "apply_patch", {"input": PATCH}), 1000)],
        ),
        (
            item("function_call_output", call_id="c", output=EXITED),
            [Did(ToolEnded("c", False, EXITED, status=2), 1000)],
        ),
        (
            item("custom_tool_call_output", call_id="c", output=[{"text": "Done"}]),
            [Did(ToolEnded("c", True, "Done"), 1000)],
        ),
        (
            item("function_call_output", call_id="c", output={"content": "Done"}),
            [Did(ToolEnded("c", True, "Done"), 1000)],
        ),
        (line("compacted", message="..."), []),
        (line("turn_context", summary="none"), []),
    ],
)
def test_a_line_is_read(written: bytes, expected: list[Step]) -> None:
    assert list(steps(written)) == expected
    assert about(written) is None


def test_the_first_line_says_what_it_is() -> None:
    written = line("session_meta", id="i", cwd="/p", timestamp="1970-01-01T00:00:02Z")

    assert about(written) == About("i", "/p", 2000)
    assert list(steps(written)) == []


@pytest.mark.parametrize(
    "written",
    [b"", b"{", b"[]", b'{"type": 7}', item("function_call", name="x"), b'{"type":"event'],
)
def test_what_is_torn_is_refused(written: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        list(steps(written))
