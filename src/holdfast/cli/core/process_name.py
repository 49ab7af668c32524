"""Name processes so that a person can say which one they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STEM_MOST = 20


def process_name(program: str, mark: str) -> str:
    """A name for a process, from its program and something that nobody else has."""
    stem = re.sub(r"[^A-Za-z0-9_.]+", "", program.rpartition("/")[2])[:_STEM_MOST]
    return f"{stem or 'process'}-{mark}"


def meant(word: str, processes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of some sessions and names those that a word means: name, session/name, or a beginning."""
    known = list(processes)
    exact = [(session, name) for session, name in known if word in (name, f"{session}/{name}")]
    return exact or [(session, name) for session, name in known if name.startswith(word)]
