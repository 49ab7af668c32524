"""The catalogue is whole: every code is documented, says what to do, and has a test."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from holdfast.app.failure_catalogue import all_failures, page
from holdfast.failures import Failure, ForeignFailure, Recovery, UnexpectedError
from holdfast.failures.wire import detail_types
from tests.failures.specimens import values

ROOT = Path(__file__).parents[2]
GENERIC = {Path(__file__), ROOT / "tests" / "failures" / "specimens.py"}

each_code = pytest.mark.parametrize("known", all_failures(), ids=lambda known: known.code)


@cache
def words_of_tests() -> set[str]:
    """Every name and every text that any test mentions, but for those that take all codes."""
    words: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        if path in GENERIC:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name):
                words.add(node.id)
            elif isinstance(node, ast.Attribute):
                words.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
    return words


@pytest.mark.promise("T4")
def test_the_page_says_what_the_code_says() -> None:
    written = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")

    assert written == page(), "run `make docs`"


@pytest.mark.promise("T4")
@each_code
def test_every_code_has_a_test(known: type[Failure]) -> None:
    is_mentioned = not words_of_tests().isdisjoint({known.__name__, known.code})

    assert is_mentioned, f"no test makes or expects {known.__name__}"


@pytest.mark.promise("T2", "T4")
@each_code
def test_every_code_says_what_happened_and_what_to_do(known: type[Failure]) -> None:
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", known.code)
    assert known.title == known.title.strip()
    assert not known.title.endswith(".")
    assert len(known.title.split()) <= 6
    assert isinstance(known.declared.recovery, Recovery)
    assert known.sentence
    if known is not ForeignFailure:
        assert known.user_template.endswith((".", "}", ")", "?"))
        assert len(known.user_template) <= 250


@pytest.mark.promise("T4")
@each_code
def test_every_user_message_is_made_of_declared_facts(known: type[Failure]) -> None:
    named = {name for _, name, _, _ in Formatter().parse(known.user_template) if name is not None}

    assert named <= set(known.detail_names())


@each_code
def test_every_fact_has_a_type_that_json_can_carry(known: type[Failure]) -> None:
    declared, _ = detail_types(known)

    for hint in declared.values():
        values(hint)


def test_a_fact_that_json_cannot_carry_is_refused() -> None:
    with pytest.raises(TypeError, match="may not be"):
        values(bytes)


def test_the_catalogue_holds_what_every_room_declares() -> None:
    known = all_failures()
    rooms = {path.parent.name for path in (ROOT / "src" / "holdfast").glob("*/failures*")}

    assert {one.__module__.split(".")[1] for one in known} == rooms | {"failures"}
    assert {ForeignFailure, UnexpectedError} <= set(known)
    assert [one.code for one in known] == sorted(one.code for one in known)


def test_the_page_is_written_by_one_command(tmp_path: Path) -> None:
    target = tmp_path / "failures.md"

    subprocess.run(
        [sys.executable, "-m", "holdfast.app.failure_catalogue", str(target)], check=True
    )

    assert target.read_text(encoding="utf-8") == page()


_DECODE = """
from holdfast.failures import from_wire, set_class_loader, title_of, to_wire, type_of
from holdfast.app.failure_catalogue import load_failure_classes
assert "MODEL_KEY_MISSING" not in type_of
set_class_loader(load_failure_classes)
details = {"provider": "openai", "variable": "OPENAI_API_KEY", "file": "keys.toml"}
known = from_wire({"code": "MODEL_KEY_MISSING", "title": "Foreign", "details": details})
print(title_of(known), known.kind.exit_status)
print(title_of(from_wire({"code": "ALIEN", "title": "From elsewhere"})))
print(type_of.keys() >= {"CODEX_NOT_FOUND", "NOT_FOUND_DRAFT", "CLI_USAGE_WRONG"})
"""


@pytest.mark.promise("S1")
def test_an_unknown_code_loads_all_declarations_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _DECODE], capture_output=True, text=True, check=False
    )

    assert done.stdout.splitlines() == ["No key for the provider 4", "From elsewhere", "True"], (
        done.stderr
    )
