"""The streams of a command that is shut in, on a terminal and on none."""

from __future__ import annotations

import fcntl
import struct
import subprocess
import termios
from pathlib import Path

import pytest

from tests.cli.pretending import Screen, on_terminal
from tests.cli.running import COMMAND, environment
from tests.cli.sandboxes import needs_sandbox, shut


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_sandbox()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def test_a_terminal_is_one_of_its_own_of_the_size_of_ours(tmp_path: Path) -> None:
    script = "test -t 0 && test -t 1 && test -t 2 && stty size && stat -Lc %r /proc/self/fd/0"
    ours = "stat -Lc %r /proc/self/fd/0"
    command = ["--", "sh", "-c", script]
    with on_terminal("sandbox", *command, home=tmp_path / "home", columns=77) as screen:
        status, text = screen.end()
    with on_terminal("sandbox", "--", "sh", "-c", ours, home=tmp_path / "home") as screen:
        other = screen.end()[1]

    assert (status, text.splitlines()[0]) == (0, "40 77")
    assert text.splitlines()[1] != ""
    assert other.strip().isdigit()


def test_keys_arrive_as_they_are_and_our_terminal_is_as_before(tmp_path: Path) -> None:
    script = "stty raw -echo; echo ready; dd bs=1 count=3 2>/dev/null | od -An -tx1"
    with on_terminal("sandbox", "--", "sh", "-c", script, home=tmp_path / "home") as screen:
        before = termios.tcgetattr(screen.master)
        screen.expect("ready")
        screen.type("\x03\x1b\r")
        status, text = screen.end()
        assert termios.tcgetattr(screen.master) == before

    assert (status, text.split()[-3:]) == (0, ["03", "1b", "0d"])


def test_a_new_size_of_the_window_arrives(tmp_path: Path) -> None:
    script = 'trap "stty size; exit" WINCH; echo ready; while :; do read -t 0.1 line; done'
    with on_terminal("sandbox", "--", "bash", "-c", script, home=tmp_path / "home") as screen:
        screen.expect("ready")
        resize(screen, rows=33, columns=99)
        screen.expect("33 99")
        assert screen.end()[0] == 0


def resize(screen: Screen, *, rows: int, columns: int) -> None:
    size = struct.pack("HHHH", rows, columns, 0, 0)
    fcntl.ioctl(screen.master, termios.TIOCSWINSZ, size)


def test_a_pipe_beside_a_terminal_stays_a_pipe(tmp_path: Path) -> None:
    script = "test -t 0 || echo piped; test -t 1 || echo no; printf 'a\\nb\\n' >&2"
    shell = f"echo x | {' '.join(COMMAND)} sandbox -- sh -c {script!r} | tee out"
    env = environment(tmp_path / "home", TERM="xterm")
    done = subprocess.run(["sh", "-c", shell], env=env, capture_output=True, timeout=60)

    assert Path("out").read_text() == "piped\nno\n"
    assert done.stderr == b"a\nb\n"


def test_streams_that_were_closed_are_empty(tmp_path: Path) -> None:
    words = [*COMMAND, "sandbox", "--", "sh", "-c", "cat; echo to nobody; exit 4"]
    closed = ["sh", "-c", 'exec "$@" <&- >&-', "sh", *words]
    done = subprocess.run(closed, env=environment(tmp_path / "home"), timeout=60, check=False)

    assert done.returncode == 4


def test_much_output_comes_through_a_terminal_to_the_last_byte(tmp_path: Path) -> None:
    script = "seq 1 20000; echo end"
    with on_terminal("sandbox", "--", "sh", "-c", script, home=tmp_path / "home") as screen:
        status, text = screen.end()

    assert status == 0
    assert text == "".join(f"{n}\n" for n in range(1, 20001)) + "end\n"


def test_much_output_comes_through_a_pipe_to_the_last_byte(tmp_path: Path) -> None:
    done = shut("--", "head", "-c", "20000000", "/dev/zero", home=tmp_path / "home", cwd=Path.cwd())

    assert done.stdout == bytes(20_000_000)


def test_when_the_terminal_goes_so_does_the_command(tmp_path: Path) -> None:
    script = "echo ready; exec sleep 1000"
    with on_terminal("sandbox", "--", "sh", "-c", script, home=tmp_path / "home") as screen:
        screen.expect("ready")
        screen.hang_up()

        assert screen.process.wait(60) == 129
