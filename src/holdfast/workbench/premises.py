"""Refuse to make a draft of what no draft can be made of, before anything is done."""

from __future__ import annotations

import os
import pwd
import re
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.confine import is_within
from holdfast.workbench.failures import ProjectRefused

_MOUNTS = Path("/proc/self/mountinfo")
_OURS = b"overlay holdfast"  # the kind and the source of every layer of ours
_ESCAPED = re.compile(rb"\\([0-7]{3})")


def refuse_unfit_project(project: Path, *, kept_in: Path) -> None:
    """Raise ProjectRefused, with the reason, if there can be no draft of a project.

    `kept_in` is where the draft would be kept.
    """
    reason = _reason(os.path.realpath(project), os.path.realpath(kept_in))
    if reason is not None:
        raise ProjectRefused(path=str(project), reason=reason)


def _reason(project: str, kept_in: str) -> str | None:
    if not os.path.isdir(project):
        return "it is not a directory"
    if project in {"/", _home()}:
        return "it is a whole machine or home; choose a directory in it"
    if is_within(kept_in, (project,)):
        return f"what is kept of it would lie inside of it, in {kept_in}"
    if any(_is_draft(above) for above in (Path(project), *Path(project).parents)):
        return "it is part of a draft itself"
    return "it is seen through a draft already" if is_within(project, _covered()) else None


def _home() -> str | None:
    with suppress(KeyError):
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    return None


def _is_draft(directory: Path) -> bool:
    return directory.name in {"copy", "place"} and (directory.parent / "draft.json").exists()


def _covered() -> tuple[str, ...]:
    """Where a layer of ours is mounted for this very process."""
    if sys.platform != "linux":
        return ()
    parts = (line.partition(b" - ") for line in _MOUNTS.read_bytes().splitlines())
    points = [where.split(b" ")[4] for where, _, what in parts if what.startswith(_OURS)]
    return tuple(os.fsdecode(_ESCAPED.sub(_byte, point)) for point in points)


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8)])
