"""Read the pages of reports as a program does."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any


def record_in(page: str) -> Any:  # Any: whatever stands there
    """The record in the page of a report."""
    found = re.search('<pre id="record">(.*?)</pre>', page, re.DOTALL)
    assert found is not None, "the page has no record"
    return json.loads(unescape(found[1]))
