"""Memory that was used once is used again, and nobody waits for what can be done in advance."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys

import pytest

PASS_OUTPUT_ON = """
from resource import RUSAGE_SELF, getrusage
from holdfast.exec.server.server import keep_freed_memory

keep_freed_memory()
for round in range(300):
    if round == 10:
        before = getrusage(RUSAGE_SELF).ru_minflt
    whole = b"".join([bytes(90_000) for _ in range(10)])
    del whole
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_passing_output_on_takes_no_new_pages() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PASS_OUTPUT_ON],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )

    assert int(done.stdout) < 1000


LOOK_SELDOM = """
import gc
from holdfast.exec.server.server import look_seldom

look_seldom()
before = [each["collections"] for each in gc.get_stats()]
kept = [[number] for number in range(100_000)]
after = [each["collections"] for each in gc.get_stats()]
print(gc.isenabled(), gc.get_freeze_count() > 1000, before[2] == after[2])
"""


def test_what_many_processes_keep_is_hardly_ever_looked_through() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK_SELDOM],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )

    assert done.stdout == b"True True True\n"


WIDEN = """
from holdfast.exec.server.server import widen_descriptors

def open_and_room() -> tuple[int, int]:
    import os
    with open("/proc/self/status") as status:
        room = next(int(line.split()[1]) for line in status if line.startswith("FDSize"))
    return len(os.listdir("/proc/self/fd")), room

import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (MOST, MOST))
before, _ = open_and_room()
widen_descriptors()
after, room = open_and_room()
print(after - before, room)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how large the table is")
@pytest.mark.parametrize(("limit", "room"), [(2**14 + 1000, 2**14), (1024, 1024)])
def test_many_descriptors_find_room_before_they_are_needed(limit: int, room: int) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < limit:
        pytest.skip(f"not so many descriptors are allowed here: {limit}")
    done = subprocess.run(
        [sys.executable, "-c", WIDEN.replace("MOST", str(limit))],
        capture_output=True,
        check=True,
        env={"PYTHONPATH": "src"},
    )

    assert done.stdout.split() == [b"0", b"%d" % room]
