"""Files of other tools are found, bounded and never believed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.cli.commands.session_import import LINE_MOST, TOOLS, Found, Reading, conversations
from holdfast.cli.foreign_transcripts import About, Asked

FIRST, SECOND = "01a1e0bb-991d-7e01-b808-aa797bb4ce99", "01a1e0bb-991d-7e01-b808-aa797bb4ceaa"


def rollout(home: Path, id_: str, *lines: str, cwd: str = "/p", at: str = "19-42-33") -> Path:
    """A rollout of Codex as it lies in its home."""
    path = home / f"sessions/2026/11/15/rollout-2026-11-15T{at}-{id_}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {"type": "session_meta", "payload": {"id": id_, "cwd": cwd}}
    path.write_text("\n".join([json.dumps(meta), *lines]) + "\n")
    return path


def asked(text: str) -> str:
    return json.dumps({"type": "event_msg", "payload": {"type": "user_message", "message": text}})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    return tmp_path


def test_those_of_the_project_are_found_the_newest_first(home: Path) -> None:
    one = rollout(home, FIRST, asked("One"))
    two = rollout(home, SECOND, asked("Two"), cwd="/p/part", at="19-50-00")
    rollout(home, FIRST[:-1] + "0", asked("Other"), cwd="/pp")
    rollout(home, FIRST[:-1] + "1", cwd="/")

    assert list(conversations(TOOLS["codex"], "/p")) == [
        Found(About(SECOND, "/p/part", 0), "Two", two),
        Found(About(FIRST, "/p", 0), "One", one),
    ]
    assert list(conversations(TOOLS["claude"], "/p")) == []


def test_transcripts_lie_by_project_and_say_which(home: Path) -> None:
    entry = {"type": "user", "sessionId": FIRST, "message": {"content": "Go"}}
    there = home / "projects/-a-b-c"  # of /a/b-c and of /a/b/c
    there.mkdir(parents=True)
    (there / f"{FIRST}.jsonl").write_text(json.dumps({**entry, "cwd": "/a/b-c"}))
    (there / "notes.jsonl").write_text("{}")

    assert [each.asked for each in conversations(TOOLS["claude"], "/a/b-c")] == ["Go"]
    assert list(conversations(TOOLS["claude"], "/a/b/c")) == []


def test_nothing_but_regular_files_of_the_right_shape_is_read(home: Path) -> None:
    real = rollout(home, FIRST, asked("One"))
    link = real.with_name(real.name.replace(FIRST, SECOND))
    link.symlink_to(real)
    os.mkfifo(real.with_name(real.name.replace(FIRST, FIRST[:-1] + "0")))
    rollout(home, FIRST[:-1] + "1").write_bytes(b"\0\xff" * 1000)
    evil = json.dumps({"type": "session_meta", "payload": {"id": "\x1b[2J", "cwd": "/p"}})
    rollout(home, FIRST[:-1] + "2").write_text(evil)
    rollout(home, FIRST[:-1] + "3").write_bytes(b'{"type":"\xff"}')

    assert [each.about.id for each in conversations(TOOLS["codex"], "/p")] == [FIRST]


def test_lines_that_cannot_be_read_are_counted(home: Path) -> None:
    deep = '{"type":"event_msg","payload":' + "[" * 100_000
    long = asked("x" * (LINE_MOST + 10))
    path = rollout(home, FIRST, asked("One"), asked("Two")[:-9], deep, long, asked("Three"))
    with path.open("ab") as file:
        file.write(asked("Four").encode().replace(b"Four", b"\xff") + b"\n")
    reading = Reading(TOOLS["codex"], path)

    assert list(reading.steps()) == [Asked("One", 0), Asked("Three", 0)]
    assert (reading.torn, reading.is_cut) == (5, False)


def test_what_is_too_long_is_cut(home: Path) -> None:
    path = rollout(home, FIRST, asked("One"))
    os.truncate(path, 65 * 1024 * 1024)
    reading = Reading(TOOLS["codex"], path)

    assert list(reading.steps()) == [Asked("One", 0)]
    assert reading.is_cut


def test_what_is_gone_says_nothing(home: Path) -> None:
    assert list(Reading(TOOLS["codex"], home / "gone").steps()) == []
