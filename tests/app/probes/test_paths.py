"""Whether paths stay inside a directory, tried in a process of its own."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from tests.app.probes.running import run_probe

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="Linux only")


@pytest.mark.parametrize("is_top", [True, False])
def test_staying_inside_is_enforced_by_this_kernel(tmp_path: Path, is_top: bool) -> None:
    answer = run_probe("paths", "leaving", "/" if is_top else tmp_path)

    if answer.get("refused", {}).get("errno") == "ENOSYS":
        pytest.skip("this kernel has no openat2")
    assert answer == {"facts": {"is_enforced": True}}
