"""When a server wants to be asked again: row by row, then whatever it says."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from holdfast.failures import parse_retry_after

pytestmark = pytest.mark.promise("T5")

NOW = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT, the example of the HTTP specification


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("007", 7.0),
        ("9" * 18, float("9" * 18)),
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10.0),
        ("Sun, 06 Nov 1994 08:49:47 -0000", 10.0),
        ("Sun, 06 Nov 1994 09:49:47 +0100", 10.0),
        ("Sunday, 06-Nov-94 08:49:47 GMT", 10.0),
        ("Sun Nov  6 08:49:47 1994", 10.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0.0),
        ("Mon, 01 Jan 1900 00:00:00 GMT", 0.0),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1.5", None),
        ("1e3", None),
        ("+5", None),
        ("٣", None),
        ("²", None),
        ("nan", None),
        ("inf", None),
        ("10 seconds", None),
        ("Sun, 99 Nov 1994 08:49:47 GMT", None),
        ("Sun, 06 Nov 1994 99:49:47 GMT", None),
        ("Sun, 06 Nov 99999999999 08:49:47 GMT", None),
        ("\0", None),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert parse_retry_after(header, now=NOW) == seconds


@given(st.text(max_size=60) | st.from_regex(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} .*"))
def test_any_header_is_read_or_ignored(header: str) -> None:
    seconds = parse_retry_after(header, now=NOW)

    assert seconds is None or 0.0 <= seconds < float("inf")


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    st.floats(0, 1e10),
)
def test_every_http_date_is_understood(date: datetime, now: float) -> None:
    date = date.replace(microsecond=0)
    assume(date.timestamp() >= 0)

    got = parse_retry_after(format_datetime(date, usegmt=True), now=now)

    assert got == max(0.0, date.timestamp() - now)


@given(st.integers(0, 10**17))
def test_every_number_of_seconds_is_understood(seconds: int) -> None:
    assert parse_retry_after(str(seconds), now=NOW) == float(seconds)
