"""Try to get out in every way; run by a Python that need see nothing but this file.

    python -I attempts.py SCENE        a JSON object; prints one that says how each try ended

A try that is not refused has succeeded; what refuses it is an error of the system or the end of
the child that tried.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PATIENCE: Final = 2.0
DESCRIPTOR: Final = 9  # number of the descriptor of an outside directory, in runs without a sandbox
_CALLS: Final = {
    "x86_64": {"add_key": 248, "io_uring_setup": 425},
    "aarch64": {"add_key": 217, "io_uring_setup": 425},
}
_NEW_USER, _SEIZE, _DETACH, _PROCESS_KEYRING = 0x1000_0000, 0x4206, 17, -2
# mov eax, 20 (getpid, for 32 bits); int 0x80; ret
_FOREIGN: Final = b"\xb8\x14\x00\x00\x00\xcd\x80\xc3"


@dataclass(frozen=True)
class Scene:
    """Where everything is: what a process may write, what it may not touch, who lives beside it."""

    workspace: str
    outside: str
    neighbour: int
    tcp: int
    udp: int
    path_socket: str
    abstract_socket: str
    canary: str

    def kept(self, name: str) -> Path:
        """A path in the directory outside."""
        return Path(self.outside, name)

    def own(self, name: str) -> Path:
        """A path in the workspace."""
        return Path(self.workspace, name)


def write_outside(scene: Scene) -> None:
    """Write a file that is not ours to write."""
    scene.kept("target").write_text("harmed")


def write_through_link(scene: Scene) -> None:
    """Write it through a symbolic link in the workspace."""
    scene.own("link").write_text("harmed")


def write_through_hard_link(scene: Scene) -> None:
    """Give it a second name in the workspace, and write that."""
    os.link(scene.kept("target"), scene.own("second"))
    scene.own("second").write_text("harmed")


def read_secret(scene: Scene) -> None:
    """Read a file of the person."""
    scene.kept("secret").read_text()


def change_mode_outside(scene: Scene) -> None:
    """Let everyone read a file outside."""
    os.chmod(scene.kept("target"), 0o666)


def change_times_outside(scene: Scene) -> None:
    """Let a file outside look old."""
    os.utime(scene.kept("target"), (1, 1))


def write_hook(scene: Scene) -> None:
    """Write what git runs at the next commit."""
    scene.own(".git/hooks/pre-commit").write_text("harmed")


def move_repository(scene: Scene) -> None:
    """Move the repository aside and make another with hooks of ours."""
    scene.own(".git").rename(scene.own("moved"))


def make_protected(scene: Scene) -> None:
    """Make settings of an agent where there are none."""
    scene.own(".claude").mkdir(exist_ok=True)
    scene.own(".claude/settings.json").write_text("{}")


def redirect_repository(scene: Scene) -> None:
    """Have git read another configuration."""
    scene.own(".git/commondir").write_text("../elsewhere")


def reach_path_socket(scene: Scene) -> None:
    """Speak with someone outside by a socket with a path, such as an agent that holds keys."""
    _greet(socket.AF_UNIX, socket.SOCK_STREAM, scene.path_socket)


def reach_abstract_socket(scene: Scene) -> None:
    """Speak with someone outside by a socket without a path."""
    _greet(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{scene.abstract_socket}")


def reach_tcp(scene: Scene) -> None:
    """Speak with a server of this machine."""
    _greet(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", scene.tcp))


def reach_udp(scene: Scene) -> None:
    """Send packets to a server of this machine."""
    _greet(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", scene.udp))


def signal_outside(scene: Scene) -> None:
    """Send a signal to a process outside."""
    os.kill(scene.neighbour, signal.SIGUSR1)


def trace_outside(scene: Scene) -> None:
    """Trace a process outside."""
    _checked(_libc().ptrace(_SEIZE, scene.neighbour, None, None))
    os.kill(scene.neighbour, 0)
    _libc().ptrace(_DETACH, scene.neighbour, None, None)


def read_environment_outside(scene: Scene) -> None:
    """Read the variables of a process outside."""
    _find(scene.canary, Path(f"/proc/{scene.neighbour}/environ"))


def enter_root_outside(scene: Scene) -> None:
    """Go where a process outside is."""
    Path(f"/proc/{scene.neighbour}/root{scene.outside}/secret").read_text()


def make_namespace(_: Scene) -> None:
    """Become root in a namespace of our own."""
    _checked(_libc().unshare(_NEW_USER))


def make_ring(_: Scene) -> None:
    """Have the kernel do things for us where no filter looks."""
    parameters = (ctypes.c_char * 120)()
    number = _CALLS[platform.machine()]["io_uring_setup"]
    _checked(_libc().syscall(ctypes.c_long(number), ctypes.c_long(2), parameters))


def add_key(_: Scene) -> None:
    """Use the keyrings of the kernel, which know no namespaces."""
    number = ctypes.c_long(_CALLS[platform.machine()]["add_key"])
    ring = ctypes.c_long(_PROCESS_KEYRING)
    words = (b"user", b"holdfast-probe", b"x", ctypes.c_long(1))
    _checked(_libc().syscall(number, *words, ring))


def use_descriptor(_: Scene) -> None:
    """Use a descriptor of a directory outside that was left open."""
    opened = os.open("secret", os.O_RDONLY, dir_fd=DESCRIPTOR)
    os.close(opened)


def find_secret_variable(scene: Scene) -> None:
    """Find a secret among our own variables."""
    _find(scene.canary, Path("/proc/self/environ"))


def call_as_another_architecture(_: Scene) -> None:
    """Call the kernel by the numbers of another architecture."""
    if platform.machine() != "x86_64":
        raise OSError("this machine has no other architecture")
    code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_FOREIGN)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    if ctypes.CFUNCTYPE(ctypes.c_int)(address)() != os.getpid():
        raise OSError("it was not understood")


ATTEMPTS: Final[tuple[Callable[[Scene], None], ...]] = (
    write_outside,
    write_through_link,
    write_through_hard_link,
    read_secret,
    change_mode_outside,
    change_times_outside,
    write_hook,
    make_protected,
    redirect_repository,
    move_repository,
    reach_path_socket,
    reach_abstract_socket,
    reach_tcp,
    reach_udp,
    signal_outside,
    trace_outside,
    read_environment_outside,
    enter_root_outside,
    make_namespace,
    make_ring,
    add_key,
    use_descriptor,
    find_secret_variable,
    call_as_another_architecture,
)


def main() -> None:
    """Try them all, each in a child of its own, and say how each ended."""
    scene = Scene(**json.loads(sys.argv[1]))
    ended = {attempt.__name__: _tried(attempt, scene) for attempt in ATTEMPTS}
    sys.stdout.write(json.dumps(ended))


def _tried(attempt: Callable[[Scene], None], scene: Scene) -> str | None:
    """Why it was refused; None if it was not."""
    hears, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            attempt(scene)
            status = 0
        except OSError as error:
            os.write(tells, (error.strerror or str(error)).encode())
        finally:
            os._exit(status)
    os.close(tells)
    with open(hears) as reports:
        refused = reports.read()
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return None if status == 0 else refused or "the probe itself is broken"


def _greet(family: int, kind: int, address: str | tuple[str, int]) -> None:
    with socket.socket(family, kind) as spoken:
        spoken.settimeout(PATIENCE)
        spoken.connect(address)
        spoken.send(b"hello")
        if spoken.recv(5) != b"hello":
            raise OSError("no answer")


def _find(canary: str, path: Path) -> None:
    if canary not in path.read_text(errors="replace"):
        raise OSError("it is not there")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
