"""A log says what it is, and one that is newer than we are is refused."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.world.failures import StoreForeign, StoreTooNew
from holdfast.world.journal_format import (
    FORMAT,
    Damage,
    DamageReason,
    JournalHeader,
    Repairs,
    encode_record,
    read_journal_header,
)


def test_an_opening_is_read_back() -> None:
    damage = Damage(offset=7, length=3, after_seq=1, reason=DamageReason.TORN)
    opening = JournalHeader(FORMAT, "log1", "notes", Repairs((damage,), 1, ("log.damaged-1",)))

    assert read_journal_header(encode_record(opening), path="/p") == opening


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (
            b'{"format":2,"all":"else is new"}',
            StoreTooNew(path="/p", schema="journal format", found=2, newest=1),
        ),
        (
            b'{"format":1}',
            StoreForeign(path="/p", expected="a journal", found="a log of an unknown kind"),
        ),
        (b"[]", StoreForeign(path="/p", expected="a journal", found="a log of an unknown kind")),
    ],
)
def test_what_we_do_not_understand_is_refused(data: bytes, failure: Failure) -> None:
    with pytest.raises(type(failure)) as raised:
        read_journal_header(data, path="/p")

    assert raised.value == failure


def test_what_a_newer_version_adds_is_no_obstacle() -> None:
    data = b'{"format":1,"log":"log1","schema":"notes","repairs":{"new":1},"more":true}'

    assert read_journal_header(data, path="/p") == JournalHeader(1, "log1", "notes", Repairs())
