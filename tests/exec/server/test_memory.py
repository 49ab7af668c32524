"""Memory that was used once is used again without asking the kernel."""

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
