"""The filter of system calls: judged by a small machine, and by the kernel itself."""

from __future__ import annotations

import ctypes
import platform
import struct

import pytest

from holdfast.confine import kernel
from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.restrict import filter_calls
from holdfast.confine.sandbox.seccomp import SocketFamily, program
from tests.confine.children import in_child

ALLOW, KILL = 0x7FFF_0000, 0x8000_0000
EPERM, ENOSYS, NO_FAMILY = 0x0005_0001, 0x0005_0026, 0x0005_0061
X86, ARM = ("x86_64", 0xC000_003E), ("aarch64", 0xC000_00B7)
INTERNET = (SocketFamily.INET, SocketFamily.INET6, SocketFamily.NETLINK)
NEWUSER, NEWNS, NEWTIME, THREAD = 0x1000_0000, 0x0002_0000, 0x80, 0x003D_0F00


def _judged(
    machine: tuple[str, int],
    number: int,
    *arguments: int,
    families: tuple[SocketFamily, ...] = INTERNET,
    architecture: int | None = None,
) -> int:
    words = [*arguments, *[0] * (6 - len(arguments))]
    code = machine[1] if architecture is None else architecture
    call = struct.pack("=IIQ6Q", number, code, 0, *(word & (1 << 64) - 1 for word in words))
    steps = list(struct.iter_unpack("=HBBI", program(machine[0], families)))
    loaded, at = 0, 0
    while True:
        operation, if_true, if_false, value = steps[at]
        at += 1
        match operation:
            case 0x20:
                loaded = struct.unpack_from("=I", call, value)[0]
            case 0x15:
                at += if_true if loaded == value else if_false
            case 0x35:
                at += if_true if loaded >= value else if_false
            case 0x45:
                at += if_true if loaded & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


@pytest.mark.parametrize(
    ("machine", "call", "expected"),
    [
        (X86, (0,), ALLOW),  # read
        (X86, (59,), ALLOW),  # execve
        (X86, (165,), EPERM),  # mount
        (X86, (435,), ENOSYS),  # clone3
        (X86, (56, THREAD), ALLOW),
        (X86, (56, 17), ALLOW),  # fork
        (X86, (56, NEWUSER | 17), EPERM),
        (X86, (56, 1 << 32 | NEWNS), EPERM),
        (X86, (272, 0x400), ALLOW),  # unshare of descriptors
        (X86, (272, NEWUSER), EPERM),
        (X86, (272, NEWTIME), EPERM),
        (X86, (308, 3, 0), EPERM),  # setns
        (X86, (16, 0, 0x5412), EPERM),  # TIOCSTI
        (X86, (16, 0, 0x5412 | 1 << 32), EPERM),
        (X86, (16, 0, 0x541C), EPERM),
        (X86, (16, 0, 0x5413), ALLOW),  # TIOCGWINSZ
        (X86, (135, 0xFFFF_FFFF), ALLOW),
        (X86, (135, 0x0040_0000), EPERM),
        (X86, (425, 1), EPERM),  # io_uring_setup
        (X86, (250, 0), EPERM),  # keyctl
        (X86, (101, 0), EPERM),  # ptrace
        (X86, (41, 2, 1, 0), ALLOW),
        (X86, (41, 10, 2, 0), ALLOW),
        (X86, (41, 1, 1, 0), EPERM),
        (X86, (41, 16, 3, 0), ALLOW),
        (X86, (41, 16, 3, 9), NO_FAMILY),  # the netlink of audit
        (X86, (41, 40, 1, 0), EPERM),  # vsock
        (X86, (41, 38, 5, 0), EPERM),  # alg
        (X86, (53, 1, 1, 0), ALLOW),  # socketpair
        (X86, (0x4000_0000 | 1,), KILL),  # x32
        (X86, (0xFFFF_FFFF,), ALLOW),  # none at all
        (ARM, (63,), ALLOW),
        (ARM, (40,), EPERM),
        (ARM, (220, NEWUSER | 17), EPERM),
        (ARM, (97, NEWNS), EPERM),
        (ARM, (29, 0, 0x5412), EPERM),
        (ARM, (198, 1, 1, 0), EPERM),
        (ARM, (198, 2, 1, 0), ALLOW),
        (ARM, (265,), EPERM),  # open_by_handle_at
    ],
)
def test_judgement(machine: tuple[str, int], call: tuple[int, ...], expected: int) -> None:
    assert _judged(machine, *call) == expected


@pytest.mark.parametrize("machine", [X86, ARM])
def test_a_foreign_architecture_is_killed(machine: tuple[str, int]) -> None:
    assert _judged(machine, 0, architecture=0x4000_0003) == KILL


def test_families_are_those_that_were_asked_for() -> None:
    asked = {
        family: _judged(X86, 41, 1, 1, 0, families=family) for family in ((), (SocketFamily.UNIX,))
    }
    assert asked == {(): EPERM, (SocketFamily.UNIX,): ALLOW}
    assert _judged(X86, 41, 2, 1, 0, families=()) == EPERM


def test_an_unknown_machine_has_no_sandbox() -> None:
    with pytest.raises(SandboxUnavailable):
        program("riscv64", INTERNET)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no filter for it")
def test_the_kernel_takes_it_and_judges_alike() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    written = program(platform.machine(), INTERNET)

    def act() -> tuple[int, int]:
        kernel.forbid_new_privileges()
        filter_calls(written)
        return libc.unshare(0x400), libc.unshare(NEWNS)

    assert in_child(act) == "(0, -1)"
