"""A skill says what it is called and what for, or is none."""

from __future__ import annotations

import pytest

from holdfast.agent.tools.skills import Skill, skill_in

BODY = "# How\nDo it.\n"


def text(*head: str) -> str:
    return "\n".join(["---", *head, "---", "", BODY])


@pytest.mark.parametrize(
    ("given", "skill"),
    [
        (text("name: x", "description: For x."), Skill("x", "For x.", BODY.strip())),
        (text('name: "x"', "description: 'It: x'"), Skill("x", "It: x", BODY.strip())),
        (
            text(
                "name: x", "description: >-", "  For", "  x.", "license: MIT", "metadata:", "  a: b"
            ),
            Skill("x", "For x.", BODY.strip()),
        ),
        (
            "\ufeff" + text("description: For x.", "name: x").replace("\n", "\r\n"),
            Skill("x", "For x.", BODY.strip()),
        ),
    ],
)
def test_a_skill_is_read(given: str, skill: Skill) -> None:
    assert skill_in(given, "x") == skill


@pytest.mark.parametrize(
    ("given", "directory", "reason"),
    [
        ("", "x", "no head"),
        ("# x", "x", "no head"),
        ("---\nname: x\n", "x", "no head"),
        (text("name: y", "description: d"), "x", "its directory is 'x'"),
        (text("description: d"), "x", "its name is ''"),
        (text("name: X y", "description: d"), "X y", "letters a-z"),
        (text("name: ../x", "description: d"), "../x", "letters a-z"),
        (text(f"name: {'x' * 65}", "description: d"), "x" * 65, "at most 64"),
        (text("name: x"), "x", "no description"),
        (text("name: x", f"description: {'d' * 1025}"), "x", "longer than 1024"),
    ],
)
def test_what_is_none_is_refused(given: str, directory: str, reason: str) -> None:
    found = skill_in(given, directory)
    assert isinstance(found, str) and reason in found
