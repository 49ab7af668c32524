"""The demonstration: it shows what it promises, and leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.commands.demo import Show
from holdfast.cli.failures import DemoFailed
from holdfast.cli.render.style import PLAIN, Look
from holdfast.runners.rehearsal.runner import FILES
from holdfast.world import command_of, system_processes
from tests.cli.planes import eventually
from tests.cli.running import COMMAND, environment, holdfast, short_home


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as path:
        yield path


def demonstrated(home: Path, *words: str) -> subprocess.Popen[str]:
    settled = {"HOLDFAST_RUNNER": "codex", "HOLDFAST_MODEL": "openai/x"}  # for real projects
    return subprocess.Popen(
        [*COMMAND, *words, "demo"],
        env=environment(home, TMPDIR=str(home), **settled),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def left_of(home: Path) -> list[str]:
    """Whatever is left: files, mounts, and processes that stand there or name it."""
    found = [str(path) for path in home.iterdir() if path.name.startswith("holdfast-demo-")]
    found += [
        line for line in Path("/proc/self/mounts").read_text().splitlines() if str(home) in line
    ]
    for each in Path("/proc").iterdir():
        try:
            words = (each / "cmdline").read_bytes() if each.name.isdigit() else b""
            where = os.readlink(each / "cwd") if words else ""
        except OSError:
            continue
        if os.fsencode(home) in words or where.startswith(str(home)):
            found.append(words.decode(errors="replace"))
    return found


def test_a_command_that_ends_otherwise_ends_it(tmp_path: Path) -> None:
    (tmp_path / "basket").mkdir()
    with pytest.raises(DemoFailed) as caught:
        Show(tmp_path, Look(80, is_coloured=False, signs=PLAIN)).run("false")

    assert caught.value == DemoFailed(command="false", status=1, expected=0)


def test_its_project_can_be_had_where_nothing_is_yet(home: Path) -> None:
    sample = home / "basket"

    first, again = (holdfast("demo", "--sample", str(sample), home=home) for _ in range(2))

    assert (first.returncode, first.stdout, first.stderr) == (0, "", "")
    assert {each.name: each.read_text() for each in sample.iterdir()} == FILES
    assert again.returncode == 2
    assert "is there already" in again.stderr


RESTART = """
while :; do "$0" -c 'import os, time; os.fork(); time.sleep(60)' "$1" host; done
"""


def test_it_kills_one_host_and_not_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its client starts another at once, and a child looks like it until it calls exec."""
    (tmp_path / "basket").mkdir()
    show = Show(tmp_path.resolve(), Look(80, is_coloured=False, signs=PLAIN))
    with subprocess.Popen(
        ["sh", "-c", RESTART, sys.executable, "holdfast.cli.main"],
        cwd=tmp_path / "basket",
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as client:
        try:
            eventually(lambda: len(hosts_in(tmp_path / "basket")) == 2)
            show.kill_host()
        finally:
            os.killpg(client.pid, signal.SIGKILL)

    assert capsys.readouterr().out.count("$ kill -9 ") == 1


def hosts_in(project: Path) -> list[int]:
    return [
        each.pid
        for each in system_processes()
        if "holdfast.cli.main host" in command_of(each.pid)
        and os.readlink(f"/proc/{each.pid}/cwd") == str(project)
    ]


@pytest.mark.timeout(400)
@pytest.mark.promise("X13")
def test_it_goes_on_through_what_it_kills_and_leaves_nothing(home: Path) -> None:
    process = demonstrated(home)
    out, _ = process.communicate(timeout=360)

    assert process.returncode == 0, out
    for line in (
        "The tests pass. The mistake was in `basket.py`",
        "$ kill -9 ",
        "Done: it is in NOTES.md.",
        "The agent crashed and lost its current turn.",
        "Done: three tests, and all of them pass.",
        "That was all of it, and nothing of it is left.",
    ):
        assert line in out, out
    assert out.count("$ kill -9 ") == 2
    eventually(lambda: not left_of(home))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_nothing_either(home: Path, number: int) -> None:
    process = demonstrated(home)
    assert process.stdout is not None
    while "▸ edit basket.py" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(number)
    process.communicate(timeout=120)

    assert process.returncode == 128 + number
    eventually(lambda: not left_of(home))
