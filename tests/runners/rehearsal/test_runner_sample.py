"""The sample project has the mistake that its scenario mends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast.runners.rehearsal.runner import write_sample


def is_mended(directory: Path) -> bool:
    argv = [sys.executable, "-m", "unittest", "-q"]
    return not subprocess.run(argv, cwd=directory, capture_output=True, check=False).returncode


def test_it_fails_and_can_be_mended(tmp_path: Path) -> None:
    write_sample(tmp_path / "new")
    basket = tmp_path / "new" / "basket.py"
    assert not is_mended(tmp_path / "new")
    basket.write_text(basket.read_text().replace("len(prices) - 1", "len(prices)"))

    assert is_mended(tmp_path / "new")
