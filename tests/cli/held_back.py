"""Run the command where the kernel refuses it namespaces, and perhaps Landlock, too.

python -m tests.cli.held_back reduced|none WORDS...
"""

from __future__ import annotations

import platform
import struct
import sys

from holdfast.cli.main import main
from holdfast.confine import kernel, restrict
from holdfast.confine.sandbox.seccomp import SocketFamily, program

_LANDLOCK_CREATE, _ENOSYS = 444, 38
_SETNS = {"x86_64": 308, "aarch64": 268}


def _refusing(number: int) -> bytes:
    """A filter that refuses one system call."""
    steps = ((0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x5_0000 | _ENOSYS))
    return b"".join(struct.pack("=HBBI", *step) for step in (*steps, (0x06, 0, 0, 0x7FFF_0000)))


if __name__ == "__main__":
    kernel.forbid_new_privileges()
    if sys.argv[1] == "outside":
        restrict.filter_calls(_refusing(_SETNS[platform.machine()]))
    else:
        restrict.filter_calls(program(platform.machine(), tuple(SocketFamily)))
    if sys.argv[1] == "none":
        restrict.filter_calls(_refusing(_LANDLOCK_CREATE))
    sys.exit(main(sys.argv[2:]))
