"""Find the project that is meant, with nothing in it half done, and what a path in it means."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from holdfast.app.settings import Settings
from holdfast.app.wiring.agent_choice import AgentChoices
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.output import complain, is_terminal, look_for
from holdfast.cli.render.publications import Righted, recovered_page
from holdfast.cli.render.style import Look
from holdfast.failures import Failure
from holdfast.nouns import PathInvalid, RelativePath, printable
from holdfast.workbench import Recovered, Workbench, recover
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.model import WorkProgress

# Tell a person how far something long has come, on a line that goes away again.

_UNTOLD: Final = 1.0  # seconds: most things are done by then
_OFTEN: Final = 0.1
_SELDOM: Final = 10.0  # seconds between two lines where none can be taken back
_ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """Takes news of progress, and shows it if it takes long; a program is told nothing."""

    def __init__(self, *, is_wanted: bool, untold: float = _UNTOLD) -> None:
        """Begin now; what comes within `untold` seconds is not worth telling."""
        self._is_wanted = is_wanted
        self._can_erase = is_terminal(sys.stderr)
        self._next = time.monotonic() + untold
        self._is_shown = False

    def __call__(self, progress: WorkProgress) -> None:
        """Show the news, unless it is too early to."""
        now = time.monotonic()
        if not self._is_wanted or now < self._next:
            return
        line = progress_text(progress)
        if self._can_erase:
            self._next, self._is_shown = now + _OFTEN, True
            complain(f"{_ERASE}  {line}")
        else:
            self._next = now + _SELDOM
            complain(f"({line})\n")

    def clear(self) -> None:
        """Take the line away before anything else is written."""
        if self._is_shown:
            self._is_shown = False
            complain(_ERASE)


def progress_text(progress: WorkProgress) -> str:
    """How far it has come, in words."""
    of = "" if progress.of is None else f" of {progress.of:,}"
    return f"{printable(progress.what)}: {progress.done:,}{of}"


_INTERRUPTED = "Interrupted. Nothing is left half done.\n"
_LEFT = "Interrupted. The next command finishes or undoes the operation, and prints which.\n"


@dataclass(frozen=True, slots=True)
class Project:
    """A project somebody works on: its workbench, and where they are."""

    workbench: Workbench
    here: Path
    progress: ProgressLine
    righted: tuple[Righted, ...]

    def path(self, word: str) -> RelativePath | None:
        """What a person means by a path, from where they are; None is the whole project."""
        top = os.fsencode(self.workbench.project)
        named = os.path.normpath(os.path.join(os.fsencode(self.here), os.fsencode(word)))
        for each in (named, _with_real_parent(named)):
            if each == top:
                return None
            if each.startswith(top.rstrip(b"/") + b"/"):
                return RelativePath.of(each[len(top.rstrip(b"/")) + 1 :])
        raise PathInvalid(path=word, reason="it is outside of the project")

    def paths(self, words: Sequence[str]) -> tuple[RelativePath, ...]:
        """What a person means by several; none of them is the whole project."""
        found = [self.path(word) for word in words]
        return () if None in found else tuple(each for each in found if each is not None)


@contextmanager
def at_work(request: Request, settings: Settings) -> Generator[Project]:
    """The project of a request; what was interrupted before is finished or undone first, and told.

    Interrupted itself, it does the same at once.
    """
    progress = ProgressLine(is_wanted=not request.is_json)
    here, workbench = _meant(request, settings, progress)
    look = look_for(sys.stderr, request, settings)
    try:
        found = righted(recover(workbench))
        progress.clear()
        complain(recovered_page(found, look))
        yield Project(workbench, here, progress, found)
    except KeyboardInterrupt:
        progress.clear()
        complain(_after_interrupt(workbench, look))
        raise
    finally:
        progress.clear()


def refuse(problem: str, request: Request) -> NoReturn:
    """Say what is wrong with a request."""
    raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")


def righted(found: Iterable[Recovered]) -> tuple[Righted, ...]:
    """What was recovered, as it is shown."""
    return tuple(
        Righted(
            what=each.what,
            is_finished=each.result == "finished",
            theirs=each.theirs,
            rescued=each.rescued,
            commit=each.commit,
        )
        for each in found
    )


def _after_interrupt(workbench: Workbench, look: Look) -> str:
    """Right what was interrupted, if that can be done at once, and tell what was.

    An interrupt may come between two steps of letting the workbench go; then it is held by us until
    we end, and the next command does it.
    """
    if not workbench.is_used:
        return _INTERRUPTED
    try:
        with workbench.locked(patience=0.0) as opened:
            found = righted(opened.recovered)
    except Failure:
        return _LEFT
    return recovered_page(found, look) + _INTERRUPTED


def _meant(request: Request, settings: Settings, progress: ProgressLine) -> tuple[Path, Workbench]:
    """Where the person is, and the project: the one they name, else the nearest that is known.

    A directory of a git repository that is not known yet means the whole repository. The sample
    project is a project of its own wherever it lies: the scripted agent works there unasked.

    A directory in which we keep our own state, such as a home, is only meant by who is in it.
    """
    named = request.value("--project")
    if named is not None:
        workbench = Workbench.at(Path(named), settings.state, on_progress=progress)
        return workbench.project, workbench
    try:
        here = Path.cwd()
    except OSError as error:
        raise ProjectRefused(path=".", reason=error.strerror or str(error)) from error
    sample = AgentChoices(settings.state).sample_at(here)
    if sample is not None:
        return here, Workbench.at(sample, settings.state, on_progress=progress)
    state = settings.state.resolve()
    above = [each for each in here.parents if not state.is_relative_to(each)]
    for each in (here, *above):
        workbench = Workbench.at(each, settings.state, on_progress=progress)
        if workbench.is_used:
            return here, workbench
    top = _repository(here, above) or here
    return here, Workbench.at(top, settings.state, on_progress=progress)


def _repository(here: Path, above: Iterable[Path]) -> Path | None:
    """The root of the git repository that a directory is in: `.git` is a file in a worktree."""
    return next((each for each in (here, *above) if os.path.lexists(each / ".git")), None)


def _with_real_parent(named: bytes) -> bytes:
    """A path as it is without links on the way; the last name may be one, and stays."""
    parent, name = os.path.split(named)
    return os.path.join(os.path.realpath(parent), name)
