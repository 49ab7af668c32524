"""Try SQLite on a file in the state directory."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts, scratch


def sqlite(directory: str) -> Facts:
    """Keep a row in write-ahead mode, and check the file that holds it."""
    with scratch(directory) as place:
        try:
            with closing(sqlite3.connect(f"{place}/try.db", isolation_level=None)) as connection:
                (journal,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
                connection.execute("CREATE TABLE kept (id INTEGER PRIMARY KEY)")
                connection.execute("INSERT INTO kept VALUES (1)")
                (integrity,) = connection.execute("PRAGMA integrity_check").fetchone()
        except sqlite3.Error as error:
            raise OSError(str(error)) from error
    return {
        "version": sqlite3.sqlite_version_info,
        "threadsafety": sqlite3.threadsafety,
        "journal": journal,
        "integrity": integrity,
    }


if __name__ == "__main__":
    answer(sqlite)
