"""The pages of the reference say what the code says, all of it, and nothing older."""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from holdfast.app.config_rules import KEYS

ROOT = Path(__file__).parents[2]
METHOD = re.compile(r"(process|fs|http|operator|place|environment|environmentConfig)(/[A-Za-z]+)+")


@cache
def pages() -> dict[str, str]:
    path = ROOT / "scripts" / "write_reference.py"
    spec = importlib.util.spec_from_file_location("write_reference", path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    found: dict[str, str] = script.pages()
    return found


@pytest.mark.parametrize("name", ["settings.md", "events.md", "protocols.md"])
def test_a_page_is_fresh(name: str) -> None:
    written = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")

    assert written == pages()[name], "make docs writes it anew"


def test_everything_that_can_be_settled_is_in_there() -> None:
    assert [key for key in KEYS if f"| `{key}` |" not in pages()["settings.md"]] == []


def test_every_method_of_an_exec_server_is_in_there() -> None:
    """Whoever serves, asks or tells a method names it; none is left out."""
    named = {
        node.value
        for path in (ROOT / "src/holdfast/exec").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if METHOD.fullmatch(node.value)
    }

    assert len(named) > 30
    assert sorted(name for name in named if f"| `{name}` |" not in pages()["protocols.md"]) == []


@pytest.mark.parametrize("page", ["events.md", "protocols.md"])
def test_each_has_a_meaning(page: str) -> None:
    rows = [line for line in pages()[page].splitlines() if line.startswith("| `")]

    assert [row for row in rows if not re.search(r"[a-z0-9)`]\. \|$", row)] == []
