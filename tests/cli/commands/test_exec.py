"""Run a command on the local server as a person does, and leave it, and come back."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.planes import eventually, plane_home, ran, running, started_for

_PIECE = bytes(range(256)) * 4096
_SPEAKS = (
    "import sys; piece = bytes(range(256)) * 4096\n"
    "for _ in range(5): sys.stdout.buffer.write(piece); sys.stderr.buffer.write(piece[::-1])"
)
_COUNTS = (
    "import sys, time\n"
    "for n in range(3000):\n"
    "    sys.stdout.write(f'{n:07}\\n'); sys.stdout.flush(); time.sleep(0.001)"
)


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    with plane_home() as home:
        yield home


def test_both_streams_arrive_to_the_last_byte_and_apart(home: Path) -> None:
    done = ran("exec", "--", sys.executable, "-c", _SPEAKS, home=home)

    assert done.returncode == 0
    assert done.stdout == _PIECE * 5
    assert done.stderr == _PIECE[::-1] * 5


def test_input_is_streamed_to_its_end(home: Path) -> None:
    done = ran("exec", "--", "cat", home=home, stdin=_PIECE * 3)

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == _PIECE * 3


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)],
)
def test_its_exit_status_is_ours(home: Path, script: str, status: int) -> None:
    assert ran("exec", "--", "sh", "-c", script, home=home).returncode == status


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGINT, "INT"),
        (signal.SIGTERM, "TERM"),
        (signal.SIGQUIT, "QUIT"),
        (signal.SIGUSR1, "USR1"),
        (signal.SIGUSR2, "USR2"),
    ],
)
def test_a_signal_reaches_the_process(home: Path, number: int, name: str) -> None:
    script = f"trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    with running("exec", "--", "sh", "-c", script, home=home) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        rest, _ = process.communicate(timeout=60)

    assert (process.returncode, rest) == (9, b"caught\n")


def test_a_second_interrupt_leaves_it_running_and_says_how_to_come_back(home: Path) -> None:
    script = "trap 'echo no' INT; echo ready; until read x; do :; done; echo got $x; exit 5"
    with running("exec", "--", "sh", "-c", script, home=home) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == b"no\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr is not None
        said = process.stderr.read()
    attach = re.search(rb"Attach with: holdfast attach (\S+)\n", said)
    assert attach is not None, said

    again = ran("attach", attach[1].decode(), home=home, stdin=b"it\n")

    assert (again.returncode, again.stdout) == (5, b"ready\nno\ngot it\n")


def test_who_is_attached_is_not_put_out(home: Path) -> None:
    with running("exec", "--", "cat", home=home) as process:
        eventually(lambda: b'"attached": true' in ran("ps", "--json", home=home).stdout)
        listed = map(json.loads, ran("ps", "--json", home=home).stdout.splitlines())
        name = next(each["id"] for each in listed if each["attached"])

        refused = ran("attach", name, home=home)
        rest, _ = process.communicate(b"still here", timeout=60)

    assert (refused.returncode, "CLI_PROCESS_ATTACHED" in refused.stderr.decode()) == (69, True)
    assert (process.returncode, rest) == (0, b"still here")


def test_the_death_of_the_server_is_not_noticed() -> None:
    with (
        plane_home() as home,
        running("exec", "--", sys.executable, "-c", _COUNTS, home=home) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        (server,) = started_for(home, word="exec-server")
        os.kill(server, signal.SIGKILL)
        rest, said = process.communicate(timeout=90)

        assert (process.returncode, said) == (0, b"")
        assert first + rest == b"".join(b"%07d\n" % number for number in range(3000))
        assert server not in started_for(home, word="exec-server")


def test_a_reader_that_leaves_ends_it_as_in_a_pipe(home: Path) -> None:
    with running("exec", "--", "yes", home=home) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.wait(timeout=60) == 141

    def ended() -> bool:
        listed = map(json.loads, ran("ps", "--json", home=home).stdout.splitlines())
        return all(each["exitCode"] == 141 for each in listed if each["argv"] == ["yes"])

    eventually(ended)


@pytest.mark.parametrize(("command", "status"), [("/no/such/program", 127), ("/etc/passwd", 126)])
def test_what_cannot_be_started_is_said(home: Path, command: str, status: int) -> None:
    done = ran("exec", "--", command, home=home)

    assert (done.returncode, b"EXEC_START_FAILED" in done.stderr) == (status, True)


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("exec",), 2, b"Missing command: put it after --"),
        (("exec", "ls"), 2, b"holdfast exec -- ls"),
        (("exec", "--server", "ws://127.0.0.1:1", "--", "true"), 69, b"RPC_SOCKET_REFUSED"),
        (("exec", "--server", "nonsense", "--", "true"), 2, b""),
    ],
)
def test_what_is_wrong_is_said_at_once(
    home: Path, words: tuple[str, ...], status: int, code: bytes
) -> None:
    done = ran(*words, home=home)

    assert (done.returncode, code in done.stderr, done.stdout) == (status, True, b"")


def test_many_at_once_start_one_server() -> None:
    with plane_home() as home:
        processes = [running("exec", "--", "echo", str(n), home=home) for n in range(4)]
        said = [process.communicate(timeout=90) for process in processes]

        assert said == [(f"{n}\n".encode(), b"") for n in range(4)]
        assert len(started_for(home, word="exec-server")) == 1
        assert [process.returncode for process in processes] == [0] * 4


@pytest.mark.parametrize("who", ["exec-server", "keeper"])
def test_ctrl_c_while_it_starts_leaves_nothing_behind(home: Path, who: str) -> None:
    ran("exec", "--", "true", home=home)
    servers = started_for(home, word="exec-server")
    (pid,) = servers if who == "exec-server" else set(started_for(home)) - set(servers)
    os.kill(pid, signal.SIGSTOP)  # so it takes as long as we like
    try:
        with running("exec", "--", "sleep", "1013", home=home) as process:
            eventually(lambda: is_connected(process.pid))
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 128 + signal.SIGINT
            assert process.stderr is not None
            assert process.stderr.read() == b""
    finally:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: all(each["exitCode"] is not None for each in listed(home)))
    assert [each for each in listed(home) if each["argv"] == ["sleep", "1013"]] == []


def is_connected(pid: int) -> bool:
    """Whether it has come so far as to speak with somebody."""
    with suppress(OSError):
        links = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
        return sum(link.startswith("socket:") for link in links) > 2  # two are its loop's own
    return False


def listed(home: Path) -> list[dict[str, object]]:
    """The processes of the local server."""
    records = map(json.loads, ran("ps", "--json", home=home).stdout.splitlines())
    return [each for each in records if each["type"] == "process"]  # orphans may be another's


def test_a_detached_process_has_its_name_and_goes_on(home: Path) -> None:
    words = ("exec", "--detach", "--name", "web")
    done = ran(*words, "--", "sh", "-c", "echo up; sleep 60", home=home, stdin=b"ignored")

    assert (done.returncode, done.stdout) == (0, b"web\n")
    eventually(lambda: ran("logs", "web", home=home).stdout == b"up\n")
    again = ran(*words, "--", "true", home=home)
    assert (again.returncode, b"runs already" in again.stderr) == (2, True)
    assert ran("stop", "web", home=home).returncode == 0
    assert ran(*words, "--", "true", home=home).returncode == 0


@pytest.mark.parametrize("name", ["-x", "a b", "x" * 65, "../up", "\x1b[2J"])
def test_a_name_that_is_not_valid_is_refused(home: Path, name: str) -> None:
    done = ran("exec", f"--name={name}", "--", "true", home=home)

    assert done.returncode == 2
    assert b"--name" in done.stderr
    assert b"\x1b" not in done.stderr
