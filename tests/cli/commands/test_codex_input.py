"""What is to be asked of Codex."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from holdfast.app.settings import parse
from holdfast.cli.commands.codex_input import CHARACTERS_MOST, Order, directory, read_order
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong

SETTINGS = parse({"HOLDFAST_CODEX": "/opt/codex"}, person=Path("/home/person"))


def asked(argument: str | None, **given: str) -> Request:
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    return Request("codex ask", argument=argument, given=tuple(flags.items()))


def piped(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_nothing_is_decided_that_was_not_asked() -> None:
    expected = Order(prompt="Fix it", codex="/opt/codex", cwd=os.getcwd())

    assert read_order(asked("Fix it"), SETTINGS) == expected


def test_everything_that_was_asked_is_ordered(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    choices = {"model": "m", "sandbox": "read-only", "approval_policy": "never"}
    request = asked("go", codex="./c", cwd=str(tmp_path / "link"), timeout="1.5", **choices)

    expected = Order(prompt="go", codex="./c", cwd=str(tmp_path), timeout=1.5, **choices)
    assert read_order(request, SETTINGS) == expected


@pytest.mark.parametrize("argument", [None, "-"])
def test_the_prompt_may_come_from_standard_input(
    argument: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped("zwölf\n".encode(), monkeypatch)

    assert read_order(asked(argument), SETTINGS).prompt == "zwölf\n"


def test_a_prompt_that_was_given_leaves_standard_input_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)

    assert read_order(asked("go"), SETTINGS).prompt == "go"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b" \n", "the prompt is empty"),
        (b"\xff", "the prompt is not UTF-8 text"),
        (b"x" * (CHARACTERS_MOST + 1), "the prompt has more than the 1,048,576 characters"),
        (b"x" * (4 * CHARACTERS_MOST + 9), "the prompt has more than the 1,048,576 characters"),
    ],
)
def test_a_prompt_that_codex_cannot_take_is_refused(
    data: bytes, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(data, monkeypatch)
    with pytest.raises(UsageWrong) as refused:
        read_order(asked("-"), SETTINGS)

    assert refused.value.problem.startswith(problem)
    assert refused.value.read_on == "holdfast codex ask --help"


@pytest.mark.parametrize("flag", ["cwd", "model", "sandbox", "approval_policy"])
def test_a_resumed_thread_keeps_its_settings(flag: str) -> None:
    with pytest.raises(UsageWrong) as refused:
        read_order(asked("go", resume="t", **{flag: "."}), SETTINGS)

    assert refused.value.problem.endswith("a resumed one keeps its settings")


def test_a_directory_must_be_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    assert directory(asked("go")) is None
    assert directory(asked("go", cwd=str(tmp_path))) == str(tmp_path)
    with pytest.raises(UsageWrong):
        directory(asked("go", cwd=str(file)))


def test_standard_input_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageWrong) as refused:
        read_order(asked("-"), SETTINGS)

    assert refused.value.problem == "the prompt is empty"
