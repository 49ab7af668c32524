"""SQLite, tried on a file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from holdfast.app.probes.database import sqlite


def test_sqlite_keeps_a_write_ahead_log(tmp_path: Path) -> None:
    assert sqlite(str(tmp_path)) == {
        "version": sqlite3.sqlite_version_info,
        "threadsafety": sqlite3.threadsafety,
        "journal": "wal",
        "integrity": "ok",
    }
    assert os.listdir(tmp_path) == []
