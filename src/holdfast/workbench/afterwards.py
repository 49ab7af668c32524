"""What is left to do once a draft was changed: it comes too late to take the change back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.failures import Failure
from holdfast.workbench.failures import RevisionUnwritten
from holdfast.workbench.model import Draft
from holdfast.world.failures import DiskFull, DiskQuota

Answer = TypeVar("Answer")


def at_last(draft: Draft, work: Callable[[], Answer], *, relieve: Callable[[], None]) -> Answer:
    """Do it, on a full disk with the room that `relieve` gives up; else raise RevisionUnwritten."""
    try:
        try:
            return work()
        except (DiskFull, DiskQuota):
            relieve()
            return work()
    except (Failure, OSError) as failure:
        raise RevisionUnwritten(draft=draft.id, reason=str(failure)) from failure
