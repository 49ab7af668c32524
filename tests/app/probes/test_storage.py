"""What the state directory does with what is written to it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from holdfast.app.probes.storage import clock, home, space, syncing


def test_home_that_exists_and_home_that_will_be_made(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)

    assert home(str(tmp_path)) == {"exists": True, "is_ours": True, "mode": 0o750}
    assert home(str(tmp_path / "new")) == {"exists": False, "is_ours": True, "mode": 0o750}


def test_syncing_takes_time_somewhere(tmp_path: Path) -> None:
    facts = syncing(str(tmp_path))

    assert isinstance(facts["median"], float)
    assert 0.0 < facts["median"] < 5.0
    assert os.path.dirname(str(facts["place"])) == str(tmp_path.resolve())


def test_space_is_what_the_filesystem_says(tmp_path: Path) -> None:
    facts = space(str(tmp_path / "new"))

    assert facts["inodes_total"] == os.statvfs(tmp_path).f_files
    assert isinstance(facts["bytes_free"], int)


def test_clock_and_file_agree(tmp_path: Path) -> None:
    facts = clock(str(tmp_path))

    assert isinstance(facts["now"], float)
    assert isinstance(facts["file_time"], float)
    assert abs(facts["now"] - time.time()) < 60.0
    assert abs(facts["now"] - facts["file_time"]) < 60.0
