"""The system calls do what they are named after, and say why if they do not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.confine import kernel
from tests.confine.children import in_child

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="these are calls of Linux"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]
OF_LIBC = 0b11 << 31  # signals 32 and 33: it hides them, and handles them once there were threads


def status(name: str) -> str:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith(name))


def test_a_user_namespace_is_left_and_joined() -> None:
    with subprocess.Popen(["unshare", "--user", "cat"], stdin=subprocess.PIPE) as other:
        ours = os.readlink("/proc/self/ns/user")
        while os.readlink(f"/proc/{other.pid}/ns/user") == ours:
            assert other.poll() is None

        def join() -> str:
            namespace = os.open(f"/proc/{other.pid}/ns/user", os.O_RDONLY)
            kernel.join(namespace)
            return os.readlink("/proc/self/ns/user")

        def leave() -> bool:
            kernel.unshare(kernel.CLONE_NEWUSER)
            return os.readlink("/proc/self/ns/user") != ours

        assert in_child(join) == os.readlink(f"/proc/{other.pid}/ns/user")
        assert in_child(leave) == "True"


def test_an_error_of_the_system_is_raised() -> None:
    with pytest.raises(OSError) as raised:
        kernel.mount(b"x", b"/nowhere", b"tmpfs")
    assert raised.value.errno in {errno.ENOENT, errno.EPERM}
    with pytest.raises(OSError):
        kernel.join(10_000)


def test_privileges_are_given_up_for_good() -> None:
    def give_up() -> list[str]:
        kernel.give_up_privileges()
        return [status("NoNewPrivs"), status("CapBnd")]

    bounding = "0" * 16 if os.geteuid() == 0 else status("CapBnd")
    assert in_child(give_up) == str(["1", bounding])
    assert in_child(lambda: (kernel.forbid_new_privileges(), status("NoNewPrivs"))[1]) == "1"


def test_signals_are_as_at_birth() -> None:
    def reset() -> list[int]:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        kernel.default_signals()
        return [int(status(name), 16) & ~OF_LIBC for name in ("SigBlk", "SigIgn", "SigCgt")]

    assert in_child(reset) == "[0, 0, 0]"


def test_descriptors_are_closed_in_a_row() -> None:
    hears, tells = os.pipe()
    os.dup2(tells, 100)
    try:
        child = os.fork()
        if child == 0:
            try:
                kernel.close_between(3, 99)
                kernel.close_between(101, 2**31 - 1)
                kernel.close_between(5, 4)
                names = sorted(int(name) for name in os.listdir("/proc/self/fd"))
                os.write(100, repr(names).encode())
            finally:
                os._exit(0)
    finally:
        os.close(tells)
        os.close(100)
    with open(hears) as said:
        assert said.read() == "[0, 1, 2, 3, 100]"  # 3: what lists them
    os.waitpid(child, 0)


def test_a_sibling_is_waited_for_by_our_parent() -> None:
    def bear() -> int:
        pid = kernel.fork_sibling()
        if pid == 0:
            os._exit(7)
        return pid

    pid = int(in_child(bear))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_a_bare_fork_is_a_child_of_ours() -> None:
    ours = os.getpid()
    pid = kernel.fork_bare()
    if pid == 0:
        os._exit(7 if os.getppid() == ours else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


FORKING = """
import os, threading
from holdfast.confine import kernel

def spin():
    while True:
        os.getpid()

for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
for _ in range(30):
    pid = kernel.fork_bare()
    if pid == 0:
        kernel.default_signals()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
print("done", flush=True)
os._exit(0)
"""


def test_a_bare_fork_beside_other_threads_does_not_wait_for_their_lock() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            assert process.communicate(timeout=100)[0] == b"done\n"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
