"""The generated reference pages are complete and up to date."""

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
def test_page_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs/reference" / name).read_text(encoding="utf-8")

    assert written == pages()[name], "run make docs"


def test_every_setting_is_listed() -> None:
    assert [key for key in KEYS if f"| `{key}` |" not in pages()["settings.md"]] == []


def test_every_exec_server_method_is_listed() -> None:
    """Method names are found as string constants in the exec package."""
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
def test_every_row_has_a_description(page: str) -> None:
    rows = [line for line in pages()[page].splitlines() if line.startswith("| `")]

    assert [row for row in rows if not re.search(r"[A-Za-z0-9)`]\. \|$", row)] == []
