"""Lines that Claude Code writes, and a small transcript that it has written."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from holdfast.cli.claude_transcript import about, steps
from holdfast.cli.foreign_transcripts import About, Asked, Did, Over, Step
from holdfast.runners.model import (
    TextCompleted,
    ThinkingCompleted,
    ToolEnded,
    ToolStarted,
    TurnEnding,
)

SAMPLE = Path(__file__).with_name("claude_sample.jsonl")  # by the real tool, version 2.1.197
BASH: dict[str, object] = {"command": "cat a", "description": "Read a"}


def line(kind: str, content: object, **more: object) -> bytes:
    entry = {"type": kind, "uuid": "u", "sessionId": "s", "cwd": "/p", **more}
    message = {"message": {"content": content}, "timestamp": "1970-01-01T00:00:01Z"}
    return json.dumps(entry | message).encode()


def test_a_recorded_transcript_is_read_whole() -> None:
    read = [step for each in SAMPLE.read_bytes().splitlines() for step in steps(each)]

    assert [
        step if isinstance(step, Asked) else step.event
        for step in read
        if not isinstance(step, Over)
    ] == [
        Asked("What does a say?", 1794772066608),
        ThinkingCompleted("28b22931-7f1a-4bad-aaad-73ebfdce3aec", "A file is wanted."),
        TextCompleted("2ce2b218-2987-455a-b960-4fb6e05c24ea", "I look."),
        ToolStarted("call_m2_0", "Bash", "cat a", BASH),
        ToolEnded("call_m2_0", True, "one"),
        TextCompleted("ced79d05-1339-4140-877e-073512899920", "It says one."),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (line("user", [{"type": "text", "text": "Go"}]), [Asked("Go", 1000)]),
        (line("user", "Go", isMeta=True), []),
        (line("user", "Go", isSidechain=True), []),
        (line("assistant", [{"type": "text", "text": "Go"}], isSidechain=True), []),
        (line("user", [{"type": "image", "source": "x"}]), []),
        (line("user", "[Request interrupted by user]"), [Over(TurnEnding.INTERRUPTED, 1000)]),
        (
            line(
                "user",
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}, {"type": "image"}],
                    }
                ],
            ),
            [Did(ToolEnded("t", False, "no"), 1000)],
        ),
        (line("assistant", [{"type": "redacted_thinking", "data": "x"}]), []),
        (line("summary", "x"), []),
    ],
)
def test_a_line_is_read(written: bytes, expected: list[Step]) -> None:
    assert list(steps(written)) == expected


def test_lines_of_people_say_what_it_is() -> None:
    assert about(line("user", "Go")) == About("s", "/p", 1000)
    assert about(line("queue-operation", "Go")) is None
    assert about(line("user", "Go", cwd="")) is None


@pytest.mark.parametrize("written", [b"", b"{", b"7", line("user", 7)])
def test_what_is_torn_is_refused(written: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        list(steps(written))
