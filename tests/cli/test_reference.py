"""The page of the documentation says what the program does."""

from __future__ import annotations

from pathlib import Path

from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.reference import page

PAGE = Path(__file__).parents[2] / "docs/reference/cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_command_and_option_is_on_it() -> None:
    text = page()

    for command in COMMANDS:
        assert f"## holdfast {command.name}" in text
        assert [flag for o in command.options for flag in o.flags if f"`{flag}`" not in text] == []
