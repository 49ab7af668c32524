"""Every way in which the command ends, as a shell sees it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.failures import to_wire
from holdfast.telemetry import read_failures
from tests.cli.planes import eventually
from tests.cli.running import COMMAND, environment, holdfast

STUBBORN = """\
#!{python}
import fcntl, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, signal.SIG_IGN)
held = open({held!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
with open({ready!r}, "w") as ready:
    ready.write("ready")
signal.pause()
"""


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        (
            ["docto"],
            "holdfast: unknown command 'docto'. Did you mean 'doctor'?",
            "Try: holdfast --help",
        ),
        (
            ["doctor", "--jsom=1"],
            "holdfast: unknown option '--jsom=1'. Did you mean '--json'?",
            "Try: holdfast doctor --help",
        ),
        (["\x1b[2J"], "holdfast: unknown command '\\x1b[2J'", "Try: holdfast --help"),
    ],
)
def test_wrong_usage_is_one_line_and_a_hint(
    words: list[str], first: str, second: str, tmp_path: Path
) -> None:
    done = holdfast(*words, home=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [first, second]


def test_wrong_usage_by_a_program_is_an_object(tmp_path: Path) -> None:
    done = holdfast("doctr", "--json", home=tmp_path)

    assert (done.returncode, done.stderr) == (2, "")
    assert json.loads(done.stdout.splitlines()[-1])["code"] == "CLI_USAGE_WRONG"


def test_a_wrong_setting_ends_with_78_and_says_which(tmp_path: Path) -> None:
    done = holdfast("doctor", home=tmp_path, HOLDFAST_DEBUG="perhaps")

    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.splitlines()[0] == "✗ A setting is not valid"
    assert done.stderr.splitlines()[-1] == "  CONFIG_SETTING_INVALID"
    assert "HOLDFAST_DEBUG is set to 'perhaps'" in done.stderr


def test_a_wrong_setting_is_an_object_for_a_program(tmp_path: Path) -> None:
    done = holdfast("doctor", "--json", home=tmp_path, HOLDFAST_DEBUG="perhaps")
    wire = json.loads(done.stdout.splitlines()[-1])

    assert (done.returncode, done.stderr) == (78, "")
    assert wire["details"] == {
        "variable": "HOLDFAST_DEBUG",
        "value": "perhaps",
        "allowed": "1, true, yes, 0, false or no",
    }
    assert wire["timestamp"] is not None


@pytest.mark.parametrize(("arguments", "says_more"), [((), False), (("--verbose",), True)])
def test_details_are_for_those_who_ask(
    arguments: tuple[str, ...], says_more: bool, tmp_path: Path
) -> None:
    done = holdfast("doctor", *arguments, home=tmp_path, HOLDFAST_DEBUG="perhaps")

    assert ("  phase: settings" in done.stderr) is says_more


@pytest.mark.parametrize("words", ["--version", "--help", "doctor"])
@pytest.mark.parametrize(
    ("redirection", "reason"),
    [("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
)
def test_an_answer_that_is_not_written_is_not_a_success(
    words: str, redirection: str, reason: str, tmp_path: Path
) -> None:
    done = _shell(f"{words} {redirection}", tmp_path)

    assert done.returncode == 74
    assert reason in done.stderr
    assert done.stderr.splitlines()[-1] == "  CLI_OUTPUT_LOST"


@pytest.mark.parametrize("words", ["--version", "doctor", "doctor --json"])
def test_a_reader_that_leaves_is_no_reason_to_complain(words: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*COMMAND, *words.split()],
            env=environment(tmp_path),
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (141, b"")


def test_nobody_to_tell_is_survived(tmp_path: Path) -> None:
    assert _shell("docto 2>&-", tmp_path).returncode == 2
    assert _shell("docto 2>/dev/full", tmp_path).returncode == 2


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_all_that_it_started(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    held, ready = tmp_path / "held", tmp_path / "ready"
    os.mkfifo(ready)
    program = tmp_path / "codex"
    program.write_text(STUBBORN.format(python=sys.executable, held=str(held), ready=str(ready)))
    program.chmod(0o700)
    path = f"{tmp_path}:{os.environ['PATH']}"

    with subprocess.Popen(
        [*COMMAND, "doctor"],
        env=environment(tmp_path, PATH=path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as doctor:
        assert ready.read_text() == "ready"
        doctor.send_signal(number)
        output, errors = doctor.communicate(timeout=30)

    assert (doctor.returncode, output, errors) == (status, b"", b"")
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # waits until the last holder has died


@pytest.mark.parametrize(
    ("arguments", "more", "is_coloured"),
    [
        ((), {"TERM": "xterm"}, True),
        ((), {"TERM": "xterm", "NO_COLOR": "1"}, False),
        ((), {"TERM": "dumb"}, False),
        (("--color=always",), {"TERM": "dumb"}, True),
        (("--color=never",), {"TERM": "xterm"}, False),
    ],
)
def test_colours_on_a_terminal(
    arguments: tuple[str, ...], more: dict[str, str], is_coloured: bool, tmp_path: Path
) -> None:
    shown = _on_terminal("doctor", *arguments, home=tmp_path, **more)

    assert (b"\x1b[1m" in shown) is is_coloured


def test_no_colours_in_a_pipe(tmp_path: Path) -> None:
    done = holdfast("doctor", home=tmp_path, TERM="xterm")

    assert "\x1b" not in done.stdout + done.stderr
    assert "\x1b[32m" in holdfast("doctor", "--color=always", home=tmp_path).stdout


def test_signs_that_cannot_be_written_are_replaced(tmp_path: Path) -> None:
    done = holdfast("doctor", home=tmp_path, PYTHONIOENCODING="ascii")

    assert done.stdout.isascii()
    assert "  + Python" in done.stdout


KEY = "sk-proj-" + "a1B2c3D4" * 8


@pytest.mark.promise("T6", "T7")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["docto"], "CLI_USAGE_WRONG"),
        (["codex", "threads", "--json", "--codex", f"/nowhere/{KEY}"], "CODEX_NOT_FOUND"),
        (["codex", "ask", "--json", "--codex", f"/nowhere/{KEY}", "go"], "CODEX_NOT_FOUND"),
        (["codex", "ask", "-v", "--codex", f"/nowhere/{KEY}", "go"], "CODEX_NOT_FOUND"),
    ],
)
def test_every_failure_is_kept_once_and_no_secret_of_it_is_seen(
    words: list[str], code: str, tmp_path: Path
) -> None:
    done = holdfast(*words, home=tmp_path)
    file = tmp_path / "state" / "failures" / "failures.jsonl"
    (kept,) = read_failures(file.parent)

    assert to_wire(kept)["code"] == code
    assert kept.timestamp is not None
    assert file.stat().st_mode & 0o777 == 0o600
    assert KEY not in file.read_text() + done.stdout + done.stderr


@pytest.mark.promise("T7")
def test_a_failure_is_told_where_it_cannot_be_kept(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    done = holdfast("docto", home=file)

    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Try: holdfast --help")


def test_success_leaves_nothing_behind(tmp_path: Path) -> None:
    holdfast("doctor", home=tmp_path)
    holdfast("doctor", "--help", home=tmp_path)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("redirection", ["> /dev/full", ">&-"])
def test_a_failure_that_no_program_can_be_told_is_told_to_the_person(
    redirection: str, tmp_path: Path
) -> None:
    done = _shell(f"doctr --json {redirection}", tmp_path)

    assert done.returncode == 2
    assert "unknown command 'doctr'" in done.stderr


def _shell(words: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -m holdfast.cli.main {words}', sys.executable],
        env=environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _on_terminal(*arguments: str, home: Path, **more: str) -> bytes:
    """What a terminal would have received."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(home, **more),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    ):
        os.close(slave)
        shown = b""
        while chunk := _read(master):
            shown += chunk
    os.close(master)
    return shown


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says EIO when the last writer has gone
        return b""


def test_a_command_whose_parent_ignores_sigint_still_ends_by_sigterm(tmp_path: Path) -> None:
    line = f'trap "" INT; exec {shlex.join([*COMMAND, "login", "openai"])}'
    with subprocess.Popen(
        ["sh", "-c", line], env=environment(tmp_path), stdin=subprocess.PIPE
    ) as process:
        eventually(lambda: _catches(process.pid, signal.SIGTERM))
        process.terminate()
        assert process.wait(60) == 128 + signal.SIGTERM


def _catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{pid}/status").read_text()
    (caught,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")]
    return bool(int(caught, 16) & 1 << number - 1)
