"""Refuse to make a draft of what no draft can be made of, before anything is done."""

from __future__ import annotations

import os
import pwd
from contextlib import suppress
from pathlib import Path

from holdfast.confine import is_within
from holdfast.workbench.failures import ProjectRefused
from holdfast.workbench.listing import mount_points

_OURS = b"overlay holdfast"  # the kind and the source of every layer of ours


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
    return tuple(map(os.fsdecode, mount_points(_OURS)))
