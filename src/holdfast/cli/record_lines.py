"""Write records for programs, one on each line."""

from __future__ import annotations

import json
from collections.abc import Mapping


def json_line(record: Mapping[str, object]) -> str:
    """One record, as one line that any program can read."""
    return json.dumps(record) + "\n"
