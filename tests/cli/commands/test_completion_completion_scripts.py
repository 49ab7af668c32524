"""Shells and `man` are taught from the same catalogue as the parser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.commands.completion import SHELLS, manual, script

OPTIONS = (*TOP, *COMMON)


def completed(tmp_path: Path, *words: str) -> list[str]:
    """What a real bash makes of a line whose last word is not over."""
    path = tmp_path / "completion.bash"
    path.write_text(script("bash", COMMANDS, OPTIONS))
    line = " ".join(f"'{word}'" for word in words)
    program = f"""
        compopt() {{ :; }}
        source {path}
        COMP_WORDS=(holdfast {line}); COMP_CWORD={len(words)}
        _holdfast; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    out = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert out.stderr == ""
    return [line for line in out.stdout.splitlines() if line]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("check",), ["checkpoint"]),
        (("checkpoint", "c"), ["create"]),
        (("--color", "dra"), ["draft"]),
        (("draft", "diff", "--st"), ["--stat"]),
        (("ask", "--run"), ["--runner"]),
        (("xyz", "a"), []),
    ],
)
def test_bash_completes_what_begins_so(
    tmp_path: Path, words: tuple[str, ...], found: list[str]
) -> None:
    assert completed(tmp_path, *words) == found


def test_every_command_and_option_can_be_completed() -> None:
    for shell in SHELLS:
        text = script(shell, COMMANDS, OPTIONS)
        for command in COMMANDS:
            assert all(word in text for word in command.name.split()), (shell, command.name)
            for option in command.options:
                assert option.flags[-1].lstrip("-") in text, (shell, option.flags)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_takes_the_script(tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed here: its script was not tried")
    path = tmp_path / "completion"
    path.write_text(script(shell, COMMANDS, OPTIONS))

    assert subprocess.run([shell, "-n", path], check=False).returncode == 0


def test_man_takes_the_page(tmp_path: Path) -> None:
    page = manual(COMMANDS, OPTIONS, GUIDE, "1.2.3")

    assert all(f'.SS "holdfast {command.name}"' in page for command in COMMANDS)
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed here: the page was not set")
    path = tmp_path / "holdfast.1"
    path.write_text(page)
    out = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", path], capture_output=True, text=True, check=False
    )
    assert (out.returncode, out.stderr) == (0, "")
    assert "holdfast checkpoint create" in out.stdout
