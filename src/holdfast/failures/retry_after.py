"""Read when a server wants to be asked again."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def parse_retry_after(header: str, *, now: float) -> float | None:
    """Read a Retry-After header, seconds or HTTP-date, as seconds from `now`; None if neither."""
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:18])
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, OverflowError):
        return None
    return max(0.0, _in_utc(date).timestamp() - now)


def _in_utc(date: datetime) -> datetime:
    return date if date.tzinfo is not None else date.replace(tzinfo=UTC)
