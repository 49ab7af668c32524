"""A person saves in the very moment between the last look and the exchange."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.workbench.failures import PublishedChanged
from tests.faults.forking import FORKS, ended, start
from tests.faults.workbench_exchanging import BY_PERSON, SAVED, publish_while_saving


def met(*habits: str) -> tuple[str, bytes]:
    """How a publication ended, and what is in the file that the person saved meanwhile."""
    with TemporaryDirectory() as base:
        child = FORKS.Process(target=publish_while_saving, args=(Path(base), habits))
        start(child)
        assert ended(child) == 0
        return Path(base, "ended").read_text(), Path(base, "project", SAVED).read_bytes()


@pytest.mark.promise("W1", "W5")
def test_what_came_out_is_looked_at_and_put_back() -> None:
    assert met() == (PublishedChanged.code, BY_PERSON)


def test_a_worker_that_does_not_look_at_what_came_out_is_caught() -> None:
    assert met("unchecked") != (PublishedChanged.code, BY_PERSON)
