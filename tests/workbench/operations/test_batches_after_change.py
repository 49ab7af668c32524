"""What fails after a draft was changed does not say that nothing was done."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.nouns import make_id
from holdfast.workbench.failures import RevisionUnwritten
from holdfast.workbench.model import Draft, DraftMode
from holdfast.workbench.operations.batches import after_change
from holdfast.world.failures import DiskFull, DiskIo, DiskQuota

DRAFT = Draft(id=make_id("draft", 1, bytes(10)), project="/p", mode=DraftMode.COPY, at_ms=1)
FULL, QUOTA, IO = DiskFull(path="/x"), DiskQuota(path="/x"), DiskIo(path="/x", reason="r")


def done(*failures: Exception) -> str:
    """Do something that fails so often; say what it came to, and whether room was given up."""
    coming, said = list(failures), ["done"]

    def work() -> str:
        if coming:
            raise coming.pop(0)
        return " ".join(said)

    return after_change(DRAFT, work, release_reserve=lambda: said.append("with the last room"))


@pytest.mark.parametrize(
    ("failures", "expected"),
    [((), "done"), ((FULL,), "done with the last room"), ((QUOTA,), "done with the last room")],
)
def test_a_full_disk_is_relieved_once(failures: tuple[Failure, ...], expected: str) -> None:
    assert done(*failures) == expected


@pytest.mark.parametrize(
    "failures", [(IO,), (FULL, IO), (FULL, FULL), (OSError(24, "Too many open files"),)]
)
def test_what_fails_too_late_says_so(failures: tuple[Exception, ...]) -> None:
    with pytest.raises(RevisionUnwritten) as raised:
        done(*failures)

    assert raised.value == RevisionUnwritten(draft=DRAFT.id, reason=str(failures[-1]))
    assert raised.value.__cause__ is failures[-1]
