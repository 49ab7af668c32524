"""Versions meet by rule: older ones are upgraded, newer ones refused."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.world.failures import StoreForeign, StoreTooNew, StoreTooOld
from holdfast.world.schema import Schema

SCHEMA = Schema("notes", 4, ("2 to 3", "3 to 4"))


@pytest.mark.parametrize(
    ("found", "upgrades"), [(4, ()), (3, ("3 to 4",)), (2, ("2 to 3", "3 to 4"))]
)
def test_an_older_version_is_upgraded_step_by_step(found: int, upgrades: tuple[str, ...]) -> None:
    assert SCHEMA.upgrades_from(found, path="/p") == upgrades


@pytest.mark.parametrize(
    ("found", "failure"),
    [
        (5, StoreTooNew(path="/p", schema="notes", found=5, newest=4)),
        (1, StoreTooOld(path="/p", schema="notes", found=1, oldest=2)),
    ],
)
def test_what_cannot_be_upgraded_is_refused(found: int, failure: Failure) -> None:
    with pytest.raises(type(failure)) as raised:
        SCHEMA.upgrades_from(found, path="/p")

    assert raised.value == failure


def test_a_store_of_something_else_is_refused() -> None:
    SCHEMA.check_name("notes", path="/p")
    with pytest.raises(StoreForeign) as raised:
        SCHEMA.check_name("tunes", path="/p")

    assert raised.value == StoreForeign(path="/p", expected="notes", found="tunes")


@pytest.mark.parametrize(("version", "upgrades"), [(1, ("a", "b")), (-1, ())])
def test_a_schema_that_begins_before_its_beginning_is_a_bug(
    version: int, upgrades: tuple[str, ...]
) -> None:
    with pytest.raises(AssertionError):
        Schema("notes", version, upgrades)
