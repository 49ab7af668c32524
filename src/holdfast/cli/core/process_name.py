"""Name processes so that a person can say which one they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.exec.wire import OperatorProcess

_STEM_MOST = 20


def process_name(program: str, mark: str) -> str:
    """A name for a process, from its program and something that nobody else has."""
    stem = re.sub(r"[^A-Za-z0-9_.]+", "", program.rpartition("/")[2])[:_STEM_MOST]
    return f"{stem or 'process'}-{mark}"


def meant(word: str, processes: Iterable[OperatorProcess]) -> list[OperatorProcess]:
    """The processes that a word names: a name, a session and a name, or how one name begins."""
    known = list(processes)
    exact = [
        each
        for each in known
        if word in (each.process.process_id, f"{each.session_id}/{each.process.process_id}")
    ]
    return exact or [each for each in known if each.process.process_id.startswith(word)]
