"""A pytest plugin that keeps the name of the test that was started last.

With `-x` that is the test that failed, also when it hung and its process was ended.
"""

from __future__ import annotations

import os
from pathlib import Path

_FILE = Path(os.environ["MUTANTS_LAST_STARTED"])


def pytest_runtest_logstart(nodeid: str) -> None:
    _FILE.write_text(nodeid, encoding="utf-8")
