"""A session as a file for others: all of it, and no secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from holdfast.app.sessions import KeptSession, Sessions
from holdfast.cli.commands.sessions import export
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.host import compose_journal
from holdfast.host.model import EventRecorded, PromptQueued, SessionOpened
from holdfast.runners.model import MemoryRecorded, TextCompleted, ToolEnded, ToolStarted
from holdfast.world.failures import DiskOccupied
from tests.cli.running import holdfast, short_home
from tests.cli.workbenches import Bench

IN_FILE = "canaryfromthefileofkeys"
IN_VARIABLE = "canary of a variable"
BY_LOOK = "sk-proj-" + "Ab3" * 16
BY_NAME = "swordfish-canary"
CANARIES = (IN_FILE, IN_VARIABLE, BY_LOOK, BY_NAME)
TOLD = " and ".join((IN_FILE, IN_VARIABLE, BY_LOOK, f"password={BY_NAME}"))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("SOME_PASSWORD", IN_VARIABLE)
    with short_home() as home:
        yield Bench(home, home)


def talked(bench: Bench) -> KeptSession:
    """A session in which every kind of text holds every kind of secret."""
    keys = bench.settings.config / "keys.toml"
    keys.parent.mkdir(parents=True)
    keys.touch(mode=0o600)
    keys.write_text(f'openai = "{IN_FILE}"\n')
    made = Sessions(bench.settings).make("/p", "d", "native", title=TOLD, options={"model": TOLD})
    memo = msgspec.Raw(msgspec.json.encode({"deep": [{"er": TOLD, "password": BY_NAME}]}))
    records = (
        SessionOpened(made.id, "/p", "d", "native", 1),
        PromptQueued("c", 1, TOLD, 2),
        EventRecorded(1, ToolStarted("i", "shell", TOLD, {"command": ["echo", TOLD], TOLD: 1})),
        EventRecorded(1, ToolEnded("i", True, TOLD)),
        EventRecorded(1, TextCompleted("j", f"Grüße: {TOLD}.")),
        EventRecorded(1, MemoryRecorded(memo)),
    )
    assert compose_journal(Sessions(bench.settings).directory(made), records, name=made.id)
    return made


def asked(bench: Bench, session: str | None = None, file: str | None = None) -> Outcome:
    given = () if file is None else (("--output", file),)
    return export(Request("sessions export", argument=session, given=given), bench.settings)


@pytest.mark.promise("T6")
def test_no_secret_leaves_whatever_it_is_known_by(bench: Bench) -> None:
    made = talked(bench)
    answer = asked(bench, made.id).answer

    about, *records = [json.loads(line) for line in answer.splitlines()]
    assert [canary for canary in CANARIES if canary in json.dumps([about, *records])] == []
    assert (about["schema"], about["type"], about["id"]) == (1, "session", made.id)
    assert [each["seq"] for each in records] == [1, 2, 3, 4, 5, 6]
    assert records[4]["event"]["text"].startswith("Grüße: [redacted:known] and ")
    assert records[5]["event"]["memo"]["deep"][0]["password"] == "[redacted:secret]"


def test_a_file_is_made_and_never_overwritten(bench: Bench, tmp_path: Path) -> None:
    made, file = talked(bench), tmp_path / "talk.jsonl"
    asked(bench, made.id[-8:], str(file))

    assert file.read_text() == asked(bench).answer
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("mine")
    with pytest.raises(DiskOccupied):
        asked(bench, None, str(file))
    assert file.read_text() == "mine"


def test_what_cannot_be_written_whole_leaves_no_file(bench: Bench) -> None:
    talked(bench)
    done = holdfast("sessions", "export", "--output", "/dev/shm/no/such/place", home=bench.home)

    assert (done.returncode, done.stdout) == (1, "")
    assert "DISK_MISSING" in done.stderr
