"""What is told about the machine does not depend on what became of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.exec.server.connection import environment_info

NOTHING: dict[str, str] = {}


def test_a_server_outlives_the_directory_that_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    assert environment_info(NOTHING).cwd == gone.as_uri()
    gone.rmdir()

    assert environment_info(NOTHING).cwd is None


def test_nothing_is_tried_to_find_out_where_temporary_files_are(tmp_path: Path) -> None:
    full = {"TMPDIR": str(tmp_path / "nowhere")}

    assert environment_info(full).temp_dir == (tmp_path / "nowhere").as_uri()
    assert environment_info(NOTHING).temp_dir == "file:///tmp"
    assert os.listdir(tmp_path) == []
