"""The server as a command: its address first, its token, and an end in good order."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.planes import plane_home, ran, running


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    with plane_home() as home:
        yield home


@contextmanager
def serving(*words: str, home: Path) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    with running("exec-server", *words, home=home) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        try:
            yield process, url
        finally:
            process.terminate()
            process.wait(timeout=60)


def test_it_tells_its_address_first_and_ends_when_told(home: Path) -> None:
    with serving(home=home) as (process, url):
        token = home / "state/exec/token"
        done = ran(
            "exec", "--server", url, "--token-file", str(token), "--", "echo", "hi", home=home
        )
        process.send_signal(signal.SIGTERM)
        rest, said = process.communicate(timeout=60)

    assert url.startswith("ws://127.0.0.1:")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hi\n", b"")
    assert (process.returncode, rest) == (0, b"")
    assert said == f"Clients are to be given --token-file {token}\n".encode()
    assert stat.S_IMODE(token.stat().st_mode) == 0o600


def test_who_has_no_token_is_not_let_in(home: Path) -> None:
    with serving(home=home) as (_, url):
        done = ran("exec", "--server", url, "--", "echo", "hi", home=home)
        listed = ran("ps", "--server", url, home=home)

    assert (done.returncode, done.stdout) == (4, b"")
    assert (listed.returncode, listed.stdout) == (4, b"")


def test_on_a_socket_of_our_own_no_token_is_needed(home: Path) -> None:
    socket = f"unix://{home}/own.sock"
    with serving("--listen", socket, "--no-token", home=home) as (_, url):
        done = ran("exec", "--server", url, "--", "sh", "-c", "exit 3", home=home)

    assert (url, done.returncode) == (socket, 3)


def test_only_some_of_our_variables_go_to_another_server(home: Path) -> None:
    with serving("--listen", f"unix://{home}/env.sock", "--no-token", home=home) as (_, url):
        there = ran("exec", "--server", url, "--", "env", home=home).stdout
    here = ran("exec", "--", "env", home=home).stdout

    assert b"PATH=" in there
    assert b"HOLDFAST_HOME=" not in there
    assert b"HOLDFAST_HOME=" in here


def test_how_much_output_is_kept_can_be_chosen(home: Path) -> None:
    options = ("--no-token", "--retention", "1", "--detached-ttl", "300")
    with serving(*options, home=home) as (_, url):
        command = ("head", "-c", "4000000", "/dev/zero")
        done = ran("exec", "--server", url, "--", *command, home=home)
        (seen,) = map(
            json.loads, ran("ps", "--json", "--server", url, home=home).stdout.splitlines()
        )
        kept = ran("logs", "--server", url, seen["id"], home=home)

    assert (done.returncode, done.stdout) == (0, bytes(4_000_000))
    assert 2**19 < len(kept.stdout) < 2**21
    assert b"no longer kept" in kept.stderr


def test_two_cannot_work_with_one_state(home: Path) -> None:
    state = str(home / "one")
    with serving("--state", state, "--no-token", home=home):
        second = ran("exec-server", "--state", state, "--no-token", home=home)

    assert (second.returncode, second.stdout) == (69, b"")
    assert b"EXEC_STATE_TAKEN" in second.stderr


def test_on_standard_streams_it_ends_with_its_input(home: Path) -> None:
    hello = b'{"id":1,"method":"initialize","params":{"clientName":"test"}}\n'
    with running("exec-server", "--listen", "stdio", home=home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(hello)
        answer = process.stdout.readline()
        rest, said = process.communicate(timeout=60)

    assert b'"sessionId"' in answer
    assert (process.returncode, rest, said) == (0, b"", b"")


def test_on_standard_streams_the_last_answer_is_given(home: Path) -> None:
    hello = b'{"id":1,"method":"initialize","params":{"clientName":"test"}}\n'

    done = ran("exec-server", "--listen", "stdio", home=home, stdin=hello)

    assert (done.returncode, b'"sessionId"' in done.stdout, done.stderr) == (0, True, b"")


def test_a_name_of_a_forwarded_port_must_be_known(home: Path) -> None:
    token = ("--token-file", str(home / "forwarded"))
    for words, status in (((), 78), (("--name", "127.0.0.2"), 0)):
        with serving("--listen", "ws://0.0.0.0:0", *token, *words, home=home) as (_, url):
            there = url.replace("0.0.0.0", "127.0.0.2")
            done = ran("exec", "--server", there, *token, "--", "true", home=home)

        assert done.returncode == status, done.stderr
        told = " ".join(done.stderr.decode().split())
        assert (f"--name {there.removeprefix('ws://')}" in told) is (status == 78)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--token-file", "x", "--no-token"), 2),
        (("--detached-ttl", "soon"), 2),
        (("--listen", "http://x", "--no-token"), 2),
    ],
)
def test_what_is_wrong_is_said(home: Path, words: tuple[str, ...], status: int) -> None:
    done = ran("exec-server", *words, home=home)

    assert (done.returncode, done.stdout) == (status, b"")
