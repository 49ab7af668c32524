"""List, read and end what runs on the local server."""

from __future__ import annotations

import json
import os
import signal
from base64 import b64decode
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.planes import eventually, plane_home, ran, running, started_for

_PIECE = bytes(range(256)) * 8192


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    with plane_home() as home:
        yield home


def listed(home: Path, *argv: str) -> list[dict[str, object]]:
    """The records of the processes with this command."""
    lines = ran("ps", "--json", home=home).stdout.splitlines()
    return [each for each in map(json.loads, lines) if each["argv"] == list(argv)]


def test_a_local_server_that_does_not_run_has_no_processes() -> None:
    with plane_home() as home:
        page, records = ran("ps", home=home), ran("ps", "--json", home=home)

        assert (page.returncode, page.stdout) == (0, b"")
        assert page.stderr.startswith(b"No processes. Start one with: holdfast exec -- ...\n")
        assert (records.returncode, b'"process"' in records.stdout) == (0, False)
        assert list(home.glob("state/exec")) == []


def test_logs_have_all_that_was_written_byte_by_byte(home: Path) -> None:
    assert ran("exec", "--", "cat", home=home, stdin=_PIECE).stdout == _PIECE
    ran("exec", "--", "sh", "-c", "echo out; echo err >&2", home=home)
    (cat,) = listed(home, "cat")
    (both,) = listed(home, "sh", "-c", "echo out; echo err >&2")

    assert (cat["exitCode"], cat["attached"]) == (0, False)
    assert ran("logs", str(cat["id"]), home=home).stdout == _PIECE
    read = ran("logs", "-f", str(both["id"]), home=home)
    assert (read.stdout, read.stderr) == (b"out\n", b"err\n")


def test_logs_follow_what_somebody_is_attached_to(home: Path) -> None:
    script = "read a; echo $a; read b; echo $b"
    with running("exec", "--", "sh", "-c", script, home=home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"one\n"
        (seen,) = listed(home, "sh", "-c", script)
        with running("logs", "-f", str(seen["id"]), home=home) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == b"one\n"
            process.communicate(b"two\n", timeout=60)
            rest, said = follower.communicate(timeout=60)

    assert (process.returncode, follower.returncode) == (0, 0)
    assert (rest, said) == (b"two\n", b"")


def test_what_a_dead_server_has_left_is_shown_and_read() -> None:
    with plane_home() as home:
        with running("exec", "--", "sh", "-c", "echo word; exec sleep 100", home=home) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"word\n"
            process.kill()
            process.wait()
        (server,) = started_for(home, word="exec-server")
        os.kill(server, signal.SIGKILL)
        eventually(lambda: server not in started_for(home))
        (seen,) = listed(home, "sh", "-c", "echo word; exec sleep 100")
        read, done = (ran(word, str(seen["id"]), home=home) for word in ("logs", "stop"))

    assert (seen["exitCode"], read.stdout, done.returncode) == (None, b"word\n", 0)


@pytest.mark.parametrize("word", ["logs", "attach", "stop"])
def test_without_a_server_there_is_no_such_process(tmp_path: Path, word: str) -> None:
    done = ran(word, "x", home=tmp_path)

    assert (done.returncode, b"EXEC_PROCESS_UNKNOWN" in done.stderr) == (1, True)


def test_logs_are_told_to_a_program_in_one_order(home: Path) -> None:
    script = "echo out; sleep 0.2; echo err >&2; exit 3"
    ran("exec", "--", "sh", "-c", script, home=home)
    (seen,) = listed(home, "sh", "-c", script)

    for words in (("logs", "--json"), ("logs", "--json", "-f")):
        done = ran(*words, str(seen["id"]), home=home)
        assert (done.returncode, done.stderr) == (0, b"")
        out, err, end = map(json.loads, done.stdout.splitlines())
        assert [(each["seq"], each["stream"]) for each in (out, err)] == [
            (1, "stdout"),
            (2, "stderr"),
        ]
        assert [b64decode(each["dataBase64"]) for each in (out, err)] == [b"out\n", b"err\n"]
        assert end == {"schema": 1, "type": "end", "exitCode": 3, "closed": True, "lost": False}


def test_a_process_that_waits_for_its_reader_is_shown(home: Path) -> None:
    with running("exec", "--", "yes", home=home) as process:
        eventually(lambda: [each["stalled"] for each in listed(home, "yes")] == ["reader"])
        assert b"waits (reader)" in ran("ps", home=home).stdout
        (seen,) = listed(home, "yes")
        done = ran("stop", "--json", str(seen["id"]), home=home)
        assert process.stdout is not None
        while process.stdout.read(2**20):
            pass  # all that it wrote comes before its end
        assert process.wait(timeout=60) == 128 + signal.SIGTERM

    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout) == {
        "schema": 1,
        "type": "stopped",
        "id": seen["id"],
        "session": seen["session"],
        "exitCode": 143,
    }


def test_stop_ends_one_kindly_or_by_force_or_all(home: Path) -> None:
    deaf = "trap '' TERM INT; echo ready; while :; do sleep 0.1; done"
    with (
        running("exec", "--", "sh", "-c", deaf, home=home) as stubborn,
        running("exec", "--", "sleep", "100", home=home) as one,
        running("exec", "--", "sleep", "101", home=home) as other,
    ):
        eventually(lambda: listed(home, "sleep", "100") and listed(home, "sleep", "101"))
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"ready\n"
        (first,) = listed(home, "sleep", "100")

        stopped = ran("stop", str(first["id"]), home=home)
        assert (stopped.returncode, stopped.stdout) == (0, b"")
        assert stopped.stderr == f"{first['id']} has ended (143).\n".encode()
        assert one.wait(timeout=60) == 128 + signal.SIGTERM
        assert other.poll() is None
        assert ran("stop", "--all", "--state", f"{home}/state", "--yes", home=home).returncode == 0
        assert other.wait(timeout=60) == 128 + signal.SIGTERM
        assert stubborn.wait(timeout=60) == 128 + signal.SIGKILL


def test_what_cannot_be_ended_is_said_to_run_on(home: Path) -> None:
    with running("exec", "--", "sleep", "102", home=home) as process:
        eventually(lambda: listed(home, "sleep", "102"))
        (found,) = listed(home, "sleep", "102")
        (keeper,) = set(started_for(home)) - set(started_for(home, word="exec-server"))
        os.kill(keeper, signal.SIGSTOP)  # no signal gets through, and no end is seen
        try:
            stopped = ran("stop", str(found["id"]), home=home)
        finally:
            os.kill(keeper, signal.SIGCONT)

        assert (stopped.returncode, stopped.stdout) == (1, b"")
        assert "CLI_PROCESS_UNDYING" in stopped.stderr.decode()
        assert process.wait(timeout=60) in {128 + signal.SIGTERM, 128 + signal.SIGKILL}


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("stop",), 2, b"say which PROCESS, or --all"),
        (("stop", "--all", "x", "--state", "."), 2, b"say which PROCESS, or --all"),
        (("stop", "--all", "--orphans"), 2, b"say which PROCESS, or --all"),
        (("stop", "--orphans", "--server", "ws://127.0.0.1:1"), 2, b"of this machine"),
        (("logs",), 2, b"say which PROCESS"),
        (("attach",), 2, b"say which PROCESS"),
        (("logs", "nobody"), 1, b"EXEC_PROCESS_UNKNOWN"),
        (("attach", "nobody"), 1, b"EXEC_PROCESS_UNKNOWN"),
        (("ps", "--server", "ws://127.0.0.1:1"), 69, b"RPC_SOCKET_REFUSED"),
        (("ps", "--token-file", "x"), 2, b"--token-file goes with --server"),
    ],
)
def test_what_is_wrong_is_said(
    home: Path, words: tuple[str, ...], status: int, said: bytes
) -> None:
    ran("exec", "--", "true", home=home)

    done = ran(*words, home=home)

    assert (done.returncode, said in done.stderr, done.stdout) == (status, True, b"")
