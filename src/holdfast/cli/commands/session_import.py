"""Take over conversations that were begun with another tool.

Find and read what other tools have written down of conversations.

These files are untrusted input: every file, line and listing is bounded, a
link is not followed, and a line that cannot be read is counted and passed over.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from holdfast.app.failures import HistoryMissing, SessionAmbiguous
from holdfast.app.sessions import RUNNERS, TITLE_MOST, KeptSession, Sessions, short
from holdfast.app.settings import Settings, environment, home_of_person
from holdfast.cli import claude_transcript, codex_rollout
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.foreign_transcripts import About, Asked, Step, records_of
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.project import at_work
from holdfast.cli.render.table import Kept, thread_line, threads_page
from holdfast.host import compose_journal
from holdfast.host.model import SessionOpened
from holdfast.nouns import printable
from holdfast.workbench import Workbench, open_draft

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
    """The events of a conversation, and the number of unreadable lines."""

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


ORIGIN: Final = "imported"  # the option of a session that says where it comes from
_SHOWN_MOST: Final = 50


def take_over(request: Request, settings: Settings) -> Outcome:
    """What a tool has about this project, or one conversation of it as a session of ours."""
    tool, wanted = _meant(request)
    with at_work(request, settings) as project:
        where = str(project.workbench.project)
        if wanted is None:
            return _listing(
                list(islice(conversations(tool, where), _SHOWN_MOST)), tool, request, settings
            )
        found = _found(tool, where, wanted)
        session = _session(tool, found, project.workbench, settings)
    reading = Reading(tool, found.path)
    opened = SessionOpened(session.id, where, session.draft, session.runner, session.at_ms)
    known = found.about.id if session.runner in RUNNERS else None
    records = records_of(opened, reading.steps(), known=known)
    directory = Sessions(settings).directory(session)
    is_new = compose_journal(directory, records, name=session.id)
    if request.is_json:
        record = {"schema": 1, "type": "session", "id": session.id, "new": is_new}
        return Outcome(answer=json_line({**record, "unread": reading.torn, "cut": reading.is_cut}))
    return Outcome(hint=_hint(session, reading, is_new=is_new))


def _meant(request: Request) -> tuple[Tool, str | None]:
    tool, *rest = request.words or ("",)
    if tool not in TOOLS or len(rest) > 1:
        problem = f"say of which tool ({', '.join(TOOLS)}), then perhaps which ID"
        raise UsageWrong(problem=problem, read_on="holdfast sessions import --help")
    return TOOLS[tool], rest[0] if rest else None


def _found(tool: Tool, project: str, wanted: str) -> Found:
    """The one conversation whose id begins so."""
    every = [each for each in conversations(tool, project) if each.about.id.startswith(wanted)]
    matching = [each for each in every if each.about.id == wanted] or every
    if not matching:
        raise HistoryMissing(tool=tool.name, conversation=wanted, project=project)
    if len(matching) > 1:
        raise SessionAmbiguous(session=wanted, count=len(matching))
    return matching[0]


def _session(tool: Tool, found: Found, bench: Workbench, settings: Settings) -> KeptSession:
    """The session that this conversation is, or becomes: the same however often it is asked for."""
    sessions, origin = Sessions(settings), f"{tool.name}/{found.about.id}"
    for each in sessions.all():
        if each.options.get(ORIGIN) == origin and each.project == str(bench.project):
            return each
    draft = open_draft(bench).id if tool.name in RUNNERS else ""
    title = " ".join(found.asked.split())[:TITLE_MOST]
    options = {ORIGIN: origin}
    return sessions.make(str(bench.project), draft, tool.name, title=title, options=options)


def _listing(found: list[Found], tool: Tool, request: Request, settings: Settings) -> Outcome:
    kept = [_kept(each) for each in found]
    if request.is_json:
        return Outcome(answer="".join(json_line(thread_line(each)) for each in kept))
    look = look_for(sys.stdout, request, settings)
    hint = f"Take one over: holdfast sessions import {tool.name} ID"
    none = f"{tool.name} keeps no conversation about this project."
    return Outcome(answer=threads_page(kept, look, now=time.time()), hint=hint if kept else none)


def _kept(found: Found) -> Kept:
    seconds = found.about.at_ms // 1000
    return Kept(
        id=found.about.id,
        preview=found.asked[:TITLE_MOST],
        name="",
        cwd=found.about.directory,
        created=seconds,
        updated=seconds,
    )


def _hint(session: KeptSession, reading: Reading, *, is_new: bool) -> str:
    name = printable(short(session))
    lines = [f"{session.id} {'is' if is_new else 'was already'} here."]
    if reading.torn:
        lines.append(f"{reading.torn} line(s) could not be read, and are left out.")
    if reading.is_cut:
        lines.append("It is too long; what came last is left out.")
    lines.append(f"Read it:  holdfast sessions show {name}")
    if session.runner in RUNNERS:
        lines.append(f"Resume:   holdfast --resume {name}")
    else:
        lines.append(f"It is read-only, because Holdfast has no runner for {session.runner} yet.")
    return "\n".join(lines)
