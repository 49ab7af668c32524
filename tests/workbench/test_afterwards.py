"""What fails after a draft was changed does not say that nothing was done."""

from __future__ import annotations

import pytest

from holdfast.nouns import make_id
from holdfast.workbench.afterwards import naming_unwritten
from holdfast.workbench.failures import RevisionUnwritten
from holdfast.workbench.model import Draft, Mode
from holdfast.world.failures import DiskFull

DRAFT = Draft(id=make_id("draft", 1, bytes(10)), project="/p", mode=Mode.COPY, at_ms=1)


def test_what_fails_too_late_says_so() -> None:
    full = DiskFull(path="/x")
    with pytest.raises(RevisionUnwritten) as raised, naming_unwritten(DRAFT):
        raise full

    assert raised.value == RevisionUnwritten(draft=DRAFT.id, reason=str(full))
    assert raised.value.__cause__ is full


def test_what_goes_well_is_left_alone() -> None:
    with naming_unwritten(DRAFT):
        done = True

    assert done
