"""A porter waits in a server's place, calls it when somebody knocks, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.exec.server import idle_listener as porter

CALLED = ("/bin/echo", "called")


@contextmanager
def waiting(
    place: Path, *, seconds: str = porter.FOR_EVER, inode: int | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A porter with a socket and a private directory in one place."""
    path, private = place / "s", place / "private"
    (private / "below").mkdir(parents=True)
    (private / "below" / "file").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        fd = listener.fileno()
        at = (str(path), str(path.stat().st_ino if inode is None else inode), str(private))
        command = [sys.executable, "-I", "-S", porter.__file__, str(fd), seconds, *at, *CALLED]
        with subprocess.Popen(command, pass_fds=[fd], stdout=subprocess.PIPE) as process:
            try:
                yield process, listener
            finally:
                process.kill()


@pytest.mark.parametrize("seconds", [porter.FOR_EVER, "60", str(100 * 86400.0)])
def test_who_knocks_is_left_to_the_command_with_all_as_it_was(tmp_path: Path, seconds: str) -> None:
    with (
        waiting(tmp_path, seconds=seconds) as (process, listener),
        socket.socket(socket.AF_UNIX) as guest,
    ):
        guest.connect(listener.getsockname())

        assert process.communicate(timeout=60)[0] == b"called\n"
        assert {path.name for path in tmp_path.iterdir()} == {"s", "private"}


@pytest.mark.parametrize("number", porter.ENDINGS)
def test_told_to_end_it_removes_what_nobody_needs(tmp_path: Path, number: signal.Signals) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, porter.ENDINGS)
    try:  # so it is started: whatever comes before it can hear is not lost
        with waiting(tmp_path) as (process, _):
            process.send_signal(number)
            assert (process.wait(timeout=60), list(tmp_path.iterdir())) == (0, [])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_after_its_time_it_ends_and_touches_no_strangers_socket(tmp_path: Path) -> None:
    with waiting(tmp_path, seconds="0.1", inode=1) as (process, _):
        assert process.wait(timeout=60) == 0
        assert [path.name for path in tmp_path.iterdir()] == ["s"]
