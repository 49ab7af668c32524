"""Say of what fails after a draft was changed that it comes too late to take that back."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from holdfast.failures import Failure
from holdfast.workbench.failures import RevisionUnwritten
from holdfast.workbench.model import Draft


@contextmanager
def naming_unwritten(draft: Draft) -> Generator[None]:
    """Let nobody think that nothing was done: only the revision of a draft is missing."""
    try:
        yield
    except Failure as failure:
        raise RevisionUnwritten(draft=draft.id, reason=str(failure)) from failure
