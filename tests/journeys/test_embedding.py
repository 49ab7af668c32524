"""What the documents say about embedding Codex is what happens."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.app.failure_catalogue import all_failures
from holdfast.codex import AppServer
from holdfast.codex.calls import limit_of
from tests.cli.pretending import BEGIN, END, pretend
from tests.cli.running import environment

ROOT = Path(__file__).parents[2]
HOW_TO = (ROOT / "docs/how-to/embed-codex.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PROOF = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
TURNS: list[Any] = [  # Any: scenarios are JSON
    [BEGIN, {"approve": "command", "command": "rm -r ."}, {"say": "Two files.", "deltas": 3}, END],
    [BEGIN, {"say": "The second."}, END],
]


def program(page: str) -> str:
    """The first program on a page."""
    return page.split("```python\n")[1].split("```")[0]


def rows(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, without its head."""
    section = HOW_TO.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_program_of_the_how_to_runs(tmp_path: Path) -> None:
    codex = pretend(tmp_path, {"on": {"turn/start": TURNS}})
    env = environment(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", program(HOW_TO)],
        env={**env, "PATH": f"{codex.parent}:{env['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("Two files.\ncompleted: The second.\n", "")


def test_the_program_without_an_event_loop_runs(tmp_path: Path) -> None:
    codex = pretend(tmp_path, {"on": {"turn/start": TURNS}})
    env = environment(tmp_path)
    section = HOW_TO.split("## Without an event loop\n")[1]
    done = subprocess.run(
        [sys.executable, "-c", program(section)],
        env={**env, "PATH": f"{codex.parent}:{env['PATH']}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("Two files.The second.\n", "")


def test_the_program_of_the_how_to_says_what_went_wrong(tmp_path: Path) -> None:
    codex = pretend(tmp_path, {"start": [{"exit": 3}]})
    env = {**environment(tmp_path), "PATH": str(codex.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program(HOW_TO)], env=env, capture_output=True, text=True
    )

    assert done.stdout.startswith("Codex did not start: ")
    assert done.stdout.endswith("(CODEX_STARTUP_FAILED)\n")


def test_it_has_twenty_lines() -> None:
    assert len([line for line in program(HOW_TO).splitlines() if line]) <= 20


def test_the_program_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codex = pretend(tmp_path, {"on": {"turn/start": TURNS}})
    monkeypatch.setenv("PATH", str(codex.parent), prepend=":")
    found: dict[str, Any] = {}  # Any: whatever the program names
    code = compile(
        program(README),
        "README.md",
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )
    monkeypatch.chdir(tmp_path)
    asyncio.run(eval(code, found))

    assert (found["answer"].text, found["same"].id) == ("The second.", found["thread"].id)
    assert (found["threads"], found["health"].healthy) == ({"data": [], "nextCursor": None}, True)


def proofs() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        yield from PROOF.findall(page.read_text(encoding="utf-8"))


def test_every_test_that_a_page_names_exists() -> None:
    named = list(proofs())
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not (ROOT / path).exists()
        or not re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text(), re.MULTILINE)
    ]

    assert named
    assert missing == []


def test_every_row_about_losses_names_its_proof() -> None:
    table = rows("What survives a crash, and what does not")

    assert len(table) >= 12
    assert [row[0] for row in table if not PROOF.search(row[-1])] == []


def test_the_timeouts_are_those_of_the_code() -> None:
    defaults = inspect.signature(AppServer.connect).parameters
    said = {re.findall(r"`([\w/]+)`", row[0])[0]: row[1] for row in rows("Timeouts")}
    exec_limit = said.pop("command/exec")

    assert (
        exec_limit
        == f"its own `timeoutMs`, and {limit_of('command/exec', {'timeoutMs': 0}):g} more"
    )
    for name, seconds in said.items():
        limit = defaults[name].default if name in defaults else limit_of(name, {})
        assert (name, float(seconds)) == (name, limit)


def test_the_codes_are_those_of_the_code() -> None:
    known = {failure.code for failure in all_failures()}
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", HOW_TO)) - {"DROP_OLDEST"}

    assert named - known == set()
    ours = {code for code in known if code.startswith("CODEX_")}
    assert ours - named == set()
