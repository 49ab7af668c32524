"""Memory that was used once is used again, and what is kept is not looked through for ever."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PASS_OUTPUT_ON = """
from resource import RUSAGE_SELF, getrusage
from holdfast.exec.server.memory import keep_freed_memory

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
from holdfast.exec.server.memory import look_seldom

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
