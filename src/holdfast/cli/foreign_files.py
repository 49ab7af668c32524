"""Find and read what other tools have written down of conversations.

Whatever lies there may have been written by anybody: every file, line and listing is bounded, a
link is not followed, and a line that cannot be read is counted and passed over.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.app.settings import environment, home_of_person
from holdfast.cli.core import claude_transcript, codex_rollout
from holdfast.cli.core.foreign_talk import About, Asked, Step

FILES_MOST: Final = 2_000  # are looked at, the newest first
ENTRIES_MOST: Final = 100_000  # names in the directories of a tool
BYTES_MOST: Final = 64 * 1024 * 1024  # of one file
LINE_MOST: Final = 8 * 1024 * 1024
HEAD_MOST: Final = 60  # lines in which a conversation says what it is, and is asked something
_ID: Final = re.compile(r"[0-9A-Za-z-]{8,64}\Z")
_ROLLOUT: Final = re.compile(r"rollout-[0-9T-]{19}-[0-9a-f-]{36}\.jsonl\Z")
_TRANSCRIPT: Final = re.compile(r"[0-9a-f-]{36}\.jsonl\Z")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that keeps conversations: where, and how a line of them is read."""

    name: str
    files: Callable[[str], Iterable[Path]]
    about: Callable[[bytes], About | None]
    steps: Callable[[bytes], Iterator[Step]]


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation that a tool keeps, and what it was first asked."""

    about: About
    asked: str
    path: Path


class Reading:
    """What was said and done in a conversation, and how many lines could not be read."""

    def __init__(self, tool: Tool, path: Path) -> None:
        self._tool, self._path = tool, path
        self.torn = 0
        self.is_cut = False  # it is too long to be read to its end

    def steps(self) -> Iterator[Step]:
        """All steps, in the order in which they were written down."""
        with suppress(OSError):
            self.is_cut = self._path.lstat().st_size > BYTES_MOST
        for line in _lines(self._path):
            try:
                yield from list(self._tool.steps(line))
            except (ValueError, RecursionError):  # it may not even be text
                self.torn += 1


def conversations(tool: Tool, project: str) -> Iterator[Found]:
    """What a tool has about a project or a part of it, the newest first."""
    for path in islice(tool.files(project), FILES_MOST):
        found = _head(tool, path)
        if found is not None and _is_meant(found.about, project):
            yield found


def _head(tool: Tool, path: Path) -> Found | None:
    about, asked = None, ""
    for line in islice(_lines(path), HEAD_MOST):
        with suppress(ValueError, RecursionError):
            about = about or tool.about(line)
            asked = asked or next((s.text for s in tool.steps(line) if isinstance(s, Asked)), "")
        if about and asked:
            break
    return None if about is None else Found(about, asked, path)


def _is_meant(about: About, project: str) -> bool:
    is_within = f"{about.directory}/".startswith(project.rstrip("/") + "/")
    return is_within and bool(_ID.match(about.id))


def _lines(path: Path) -> Iterator[bytes]:
    """Every line of a regular file, as far as there are bounds; none of what cannot be opened."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with suppress(OSError), open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return
        left = BYTES_MOST
        while left > 0 and (line := file.readline(min(left, LINE_MOST))):
            left -= len(line)
            yield line  # of one that is too long the pieces are no JSON, so they count as torn


def _codex_files(project: str) -> Iterable[Path]:
    """Rollouts lie by day, and begin with the time; which project they are of, they say inside."""
    del project
    home = environment().get("CODEX_HOME")
    top = (Path(home) if home else home_of_person() / ".codex") / "sessions"
    walked = (
        (name, directory)
        for directory, _, names in os.walk(top)
        for name in names
        if _ROLLOUT.match(name)
    )
    return [Path(where, name) for name, where in sorted(islice(walked, ENTRIES_MOST), reverse=True)]


def _claude_files(project: str) -> Iterable[Path]:
    """Transcripts lie in a directory for each project, named after its path."""
    home = environment().get("CLAUDE_CONFIG_DIR")
    top = Path(home) if home else home_of_person() / ".claude"
    there = top / "projects" / re.sub(r"[^A-Za-z0-9]", "-", project)
    with suppress(OSError), os.scandir(there) as entries:
        named = (entry for entry in entries if _TRANSCRIPT.match(entry.name))
        dated = ((each.stat(follow_symlinks=False).st_mtime, Path(each.path)) for each in named)
        return [path for _, path in sorted(islice(dated, ENTRIES_MOST), reverse=True)]
    return []


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("codex", _codex_files, codex_rollout.about, codex_rollout.steps),
        Tool("claude", _claude_files, claude_transcript.about, claude_transcript.steps),
    )
}
