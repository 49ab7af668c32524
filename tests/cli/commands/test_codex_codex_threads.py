"""The list of threads, asked by a person and by a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.pretending import on_terminal, pretend, sent
from tests.cli.running import holdfast

HOSTILE = "Fix \x1b[2J\u202e\nit " + "x" * 200


def thread(name: str, preview: str) -> dict[str, object]:
    return {"id": name, "preview": preview, "cwd": "/p", "createdAt": 0, "updatedAt": 0}


def listing(directory: Path, *pages: dict[str, Any]) -> Path:  # Any: JSON
    return pretend(directory, {"on": {"thread/list": [[{"answer": page}] for page in pages]}})


def test_a_person_sees_a_line_for_each(tmp_path: Path) -> None:
    page = {"data": [thread("t-1", HOSTILE), thread("t-2", "Docs")], "nextCursor": None}
    codex = listing(tmp_path, page)
    arguments = ("codex", "threads", "--codex", str(codex))
    with on_terminal(*arguments, home=tmp_path, columns=60) as screen:
        status, shown = screen.end()

    assert status == 0
    assert shown.splitlines() == [
        f"t-1  1970-01-01  Fix \\x1b[2J\\u202e it {'x' * 21}…",
        "t-2  1970-01-01  Docs",
    ]


def test_a_program_gets_a_record_for_each(tmp_path: Path) -> None:
    page = {"data": [thread("t-1", HOSTILE)], "nextCursor": None}
    done = holdfast(
        "codex", "threads", "--json", home=tmp_path, HOLDFAST_CODEX=str(listing(tmp_path, page))
    )
    (record,) = map(json.loads, done.stdout.splitlines())

    assert (done.returncode, done.stderr) == (0, "")
    assert (record["schema"], record["id"], record["preview"]) == (1, "t-1", HOSTILE)


def test_as_many_as_are_wanted_are_fetched(tmp_path: Path) -> None:
    full = {"data": [thread(f"t-{n}", "") for n in range(100)], "nextCursor": "on"}
    codex = listing(tmp_path, full, {"data": [thread("last", "")], "nextCursor": "more"})
    done = holdfast(
        *("codex", "threads", "--limit", "101", "--cwd", str(tmp_path)),
        home=tmp_path,
        HOLDFAST_CODEX=str(codex),
    )

    assert len(done.stdout.splitlines()) == 101
    assert done.stderr == "There are more: add --limit 1010\n"
    asked = {"sortKey": "updated_at", "cwd": str(tmp_path)}
    assert sent(tmp_path, "thread/list") == [
        {**asked, "limit": 100, "cursor": None},
        {**asked, "limit": 1, "cursor": "on"},
    ]


def test_no_threads_are_said_to_be_none(tmp_path: Path) -> None:
    codex = listing(tmp_path, {"data": [], "nextCursor": None})
    done = holdfast("codex", "threads", home=tmp_path, HOLDFAST_CODEX=str(codex))

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == 'No threads. Begin one: holdfast codex ask "..."\n'


@pytest.mark.parametrize("answer", [[], {}, {"data": {}}, {"data": [7, {"preview": "x"}]}])
def test_an_odd_answer_is_an_empty_list(answer: object, tmp_path: Path) -> None:
    codex = pretend(tmp_path, {"on": {"thread/list": [[{"answer": answer}]]}})
    done = holdfast("codex", "threads", "--json", home=tmp_path, HOLDFAST_CODEX=str(codex))

    assert (done.returncode, done.stdout) == (0, "")


def test_a_failure_is_an_object_for_a_program(tmp_path: Path) -> None:
    done = holdfast("codex", "threads", "--json", "--codex", "/nowhere", home=tmp_path)

    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "CODEX_NOT_FOUND"
