"""Run a script shut in, under a kernel that refuses what a sandbox needs, and say what came.

    python -m tests.confine.without [namespaces] [landlock] [full] DIRECTORY SCRIPT

`full` refuses to have less than a full sandbox. The directory is that of a stage.
"""

from __future__ import annotations

import errno
import platform
import struct
import sys
from dataclasses import replace
from pathlib import Path

from holdfast.confine import kernel
from holdfast.confine.failures import SandboxUnavailable
from holdfast.confine.policy import Strength
from holdfast.confine.restrict import filter_calls
from tests.confine.shutting import Stage

UNSHARE = {"x86_64": 272, "aarch64": 97}
CLONE = {"x86_64": 56, "aarch64": 220}
LANDLOCK = 444
NEWUSER = 0x1000_0000


def refuse(*, namespaces: bool, landlock: bool) -> None:
    """Have a kernel that refuses new namespaces of users, or Landlock, or both, from now on."""
    steps = [(0x20, 0, 0, 0)]
    refused = (0x06, 0, 0, 0x0005_0000 | errno.EPERM)
    if landlock:
        steps += [(0x15, 0, 1, LANDLOCK), refused]
    if namespaces:
        for number in (UNSHARE[platform.machine()], CLONE[platform.machine()]):
            asked = [(0x20, 0, 0, 16), (0x45, 0, 1, NEWUSER), refused, (0x06, 0, 0, 0x7FFF_0000)]
            steps += [(0x15, 0, len(asked), number), *asked]
    steps.append((0x06, 0, 0, 0x7FFF_0000))
    kernel.forbid_new_privileges()
    filter_calls(b"".join(struct.pack("=HBBI", *step) for step in steps))


def main() -> None:
    """Refuse, run, and say how strong the sandbox was and what was said in it."""
    *options, directory, script = sys.argv[1:]
    around = Path(directory)
    here = Stage(around / "workspace", around / "outside", around / "state")
    refuse(namespaces="namespaces" in options, landlock="landlock" in options)
    least = Strength.FULL if "full" in options else Strength.REDUCED
    try:
        done = here.shell(script, replace(here.policy, strength_least=least))
    except SandboxUnavailable as unavailable:
        print(f"refused, kind {unavailable.kind}", end="")
    else:
        print(f"{done.strength}: {done.said}", end="")


if __name__ == "__main__":
    main()
