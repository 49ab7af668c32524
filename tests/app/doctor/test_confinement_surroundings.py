"""What facts about sockets and programs mean."""

from __future__ import annotations

import pytest

from holdfast.app.doctor.confinement import (
    Keyring,
    Ran,
    Reached,
    judge_keyring,
    judge_loopback,
    judge_program,
    judge_socket,
)
from holdfast.app.doctor.model import Finding, Machine, Refused, Status

LINUX = Machine(system="Linux", family="debian", is_root=True)
MAC = Machine(system="Darwin")
OK, WARNING, FAILED = Status.OK, Status.WARNING, Status.FAILED


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (Reached(answered=True), OK),
        (Reached(answered=False), FAILED),
        (Refused("Cannot assign requested address"), FAILED),
    ],
)
def test_loopback(facts: Reached | Refused, status: Status) -> None:
    assert judge_loopback(facts).status is status


@pytest.mark.parametrize(
    ("facts", "status", "said"),
    [
        (Keyring("SecretService"), OK, "SecretService"),
        (Refused("none is installed", "ENOENT"), Status.SKIPPED, "no library for it"),
        (Refused("it is locked"), WARNING, "cannot be used (it is locked)"),
    ],
)
def test_keyring(facts: Keyring | Refused, status: Status, said: str) -> None:
    found = judge_keyring(facts)

    assert (found.status, found.text.startswith(said)) == (status, True)
    assert (found.remedy is not None) == (status is WARNING)


@pytest.mark.parametrize(
    ("facts", "machine", "length", "status"),
    [
        (Reached(answered=True), LINUX, 70, OK),
        (Reached(answered=True), LINUX, 71, FAILED),
        (Reached(answered=True), MAC, 66, OK),
        (Reached(answered=True), MAC, 67, FAILED),
        (Refused("Permission denied"), LINUX, 10, FAILED),
        (Reached(answered=False), LINUX, 10, FAILED),
    ],
)
def test_socket(facts: Reached | Refused, machine: Machine, length: int, status: Status) -> None:
    directory = "/" + "d" * (length - 1)

    assert judge_socket(facts, machine, directory=directory).status is status


@pytest.mark.parametrize(
    ("name", "facts", "expected"),
    [
        ("git", Ran(0, "git version 2.39.5"), Finding(OK, "2.39.5")),
        ("codex", Ran(0, "codex-cli 0.166.0-alpha.1"), Finding(OK, "0.166.0-alpha.1")),
        ("rg", Ran(0, "no number"), Finding(OK, "no number")),
        (
            "rg",
            Refused("not found", "ENOENT"),
            Finding(WARNING, "not found; needed to search fast", "apt install ripgrep"),
        ),
        (
            "codex",
            Ran(1, "boom"),
            Finding(
                WARNING,
                "does not start (status 1: boom)",
                "npm install -g @openai/codex",
            ),
        ),
        (
            "node",
            Refused("no answer within 2.5 s"),
            Finding(WARNING, "does not start (no answer within 2.5 s)", "apt install nodejs"),
        ),
    ],
)
def test_program(name: str, facts: Ran | Refused, expected: Finding) -> None:
    assert judge_program(facts, LINUX, name=name) == expected
