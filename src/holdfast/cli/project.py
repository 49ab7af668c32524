"""Find the project of a request, recover it, and resolve paths in it."""

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

_DELAY: Final = 1.0  # seconds before anything is shown
_OFTEN: Final = 0.1
_SELDOM: Final = 10.0  # seconds between lines if standard error is not a terminal
_ERASE: Final = "\r\x1b[K"


class ProgressLine:
    """Shows progress on standard error once an operation takes long; nothing with --json."""

    def __init__(self, *, is_wanted: bool, delay: float = _DELAY) -> None:
        """Start the clock; nothing is shown within `delay` seconds."""
        self._is_wanted = is_wanted
        self._can_erase = is_terminal(sys.stderr)
        self._next = time.monotonic() + delay
        self._is_shown = False

    def __call__(self, progress: WorkProgress) -> None:
        """Show progress, at most once per interval."""
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
        """Erase the line; call before writing anything else."""
        if self._is_shown:
            self._is_shown = False
            complain(_ERASE)


def progress_text(progress: WorkProgress) -> str:

    of = "" if progress.of is None else f" of {progress.of:,}"
    return f"{printable(progress.what)}: {progress.done:,}{of}"


_INTERRUPTED = "Interrupted. Nothing is left half done.\n"
_LEFT = "Interrupted. The next command finishes or undoes the operation, and prints which.\n"


@dataclass(frozen=True, slots=True)
class Project:
    """The workbench of a project, and the current directory of the user."""

    workbench: Workbench
    here: Path
    progress: ProgressLine
    righted: tuple[Righted, ...]

    def path(self, word: str) -> RelativePath | None:
        """Resolve a path from the user's directory; None is the whole project.

        Raises PathInvalid outside of the project.
        """
        top = os.fsencode(self.workbench.project)
        named = os.path.normpath(os.path.join(os.fsencode(self.here), os.fsencode(word)))
        for each in (named, _with_real_parent(named)):
            if each == top:
                return None
            if each.startswith(top.rstrip(b"/") + b"/"):
                return RelativePath.of(each[len(top.rstrip(b"/")) + 1 :])
        raise PathInvalid(path=word, reason="it is outside of the project")

    def paths(self, words: Sequence[str]) -> tuple[RelativePath, ...]:
        """Resolve several paths; empty if one of them is the whole project."""
        found = [self.path(word) for word in words]
        return () if None in found else tuple(each for each in found if each is not None)


@contextmanager
def at_work(request: Request, settings: Settings) -> Generator[Project]:
    """Open the project of a request, after recovering interrupted operations.

    On KeyboardInterrupt it recovers at once, if the workbench lock is free.
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
    """Raise UsageWrong with this problem."""
    raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")


def righted(found: Iterable[Recovered]) -> tuple[Righted, ...]:
    """Recovered operations, for rendering."""
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
    """Recover at once and return the page about it.

    The interrupt may have come while the lock was being released; then this process holds it until
    it exits, and the next command recovers.
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
