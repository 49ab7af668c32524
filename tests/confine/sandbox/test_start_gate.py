"""A sandbox stands and waits: we can listen in its network, and nobody else is let in."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.failures import SandboxFailed
from holdfast.confine.sandbox.start_gate import PROXY_PORT, StartGate, command_of

BWRAP = shutil.which("bwrap") or ""
pytestmark = pytest.mark.skipif(not BWRAP, reason="bubblewrap (bwrap) is not installed")
ASK = (
    f"import socket; s = socket.create_connection(('127.0.0.1', {PROXY_PORT}));"
    "s.sendall(b'hello'); print(s.recv(99).decode())"
)


@contextmanager
def standing(*words: str) -> Generator[tuple[StartGate, int, int]]:
    """A sandbox before its command, its number, and where its output can be read."""
    options = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc"]
    reads, writes = os.pipe()
    nothing = os.open(os.devnull, os.O_RDWR)
    files = {nothing: 0, writes: 1, 2: 2}
    env = {"PATH": os.defpath}
    entry = ProcessEntry([BWRAP, *options, *words], env, "/", BWRAP, files, is_unprivileged=False)
    pid = 0
    try:
        with StartGate(entry) as threshold:
            pid = enter(threshold.entry)
            os.close(writes)
            os.close(nothing)
            yield threshold, pid, reads
    finally:
        os.close(reads)
        os.waitpid(pid, 0)


def read_all(descriptor: int) -> str:
    with open(os.dup(descriptor), encoding="utf-8") as file:
        return file.read()


def test_those_inside_reach_our_socket_and_it_is_in_no_other_network() -> None:
    with standing("--", sys.executable, "-c", ASK) as (threshold, _, output):
        threshold.arrive()
        with threshold.listen() as listener:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(listener.getsockname())
            threshold.cross()
            client, _ = listener.accept()
            with client:
                assert client.recv(99) == b"hello"
                client.sendall(b"welcome")
            assert read_all(output) == "welcome\n"


def test_the_command_waits_for_our_word_and_is_found() -> None:
    with standing("--", "/bin/sh", "-c", "echo begun; read line") as (threshold, _, output):
        os.set_blocking(output, False)
        threshold.arrive()
        with pytest.raises(BlockingIOError):
            os.read(output, 9)
        os.set_blocking(output, True)
        threshold.cross()
        assert read_all(output) == "begun\n"
    assert command_of(threshold.first) is None


def _command_once_it_is(words: bytes, threshold: StartGate) -> int:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = command_of(threshold.first)
        if found is not None and Path(f"/proc/{found}/cmdline").read_bytes() == words:
            return found
    raise AssertionError("the command never began")


def test_the_command_inside_is_known_by_the_number_that_we_see() -> None:
    with standing("--", "/bin/sleep", "60") as (threshold, _, output):
        threshold.arrive()
        threshold.cross()
        found = _command_once_it_is(b"/bin/sleep\x0060\0", threshold)
        os.kill(found, 9)
        assert read_all(output) == ""


@pytest.mark.parametrize("_", range(5))
def test_who_is_left_at_the_threshold_never_begins(tmp_path: Path, _: int) -> None:
    mark = tmp_path / "begun"
    words = ("--bind", str(tmp_path), str(tmp_path), "--", "/bin/touch", str(mark))
    with standing(*words) as (threshold, _pid, _output):
        threshold.arrive()

    assert not mark.exists()


def test_no_command_begins_if_we_are_killed_before_our_word(tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    words = ("--bind", str(tmp_path), str(tmp_path), "--", "/bin/touch", str(mark))
    reads, writes = os.pipe()
    killed = os.fork()
    if killed == 0:
        os.dup2(writes, 2, inheritable=True)  # whoever has it open lives
        with standing(*words) as (threshold, _, _):
            threshold.arrive()
            while command_of(threshold.first) is None:  # before, bubblewrap may be left stranded
                os.sched_yield()
            os.kill(os.getpid(), 9)
    os.waitpid(killed, 0)
    os.close(writes)

    assert os.read(reads, 9) == b""  # all are gone
    os.close(reads)
    assert not mark.exists()


def test_a_sandbox_that_does_not_come_to_stand_is_said() -> None:
    with standing("--ro-bind", "/nonexistent", "/x", "--", "/bin/true") as (threshold, pid, _):
        with pytest.raises(SandboxFailed):
            threshold.arrive()
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # it may last that long
            threshold.listen()


def test_nothing_is_left_open() -> None:
    before = os.listdir("/proc/self/fd")
    with standing("--", "/bin/true") as (threshold, _, _):
        threshold.arrive()
        threshold.listen().close()
        threshold.cross()

    assert os.listdir("/proc/self/fd") == before
