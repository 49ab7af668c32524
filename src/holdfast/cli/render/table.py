"""Lay out the threads that Codex keeps, for a person and for a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.cli.model import Json
from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import cut, printable

SCHEMA = 1
_NARROW = 60  # below this the id gets a line of its own
_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "d"))
_WHEN = 10  # columns: as many as a date needs
_BEGIN_LEAST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One thread, as much of it as a list needs; times in seconds since the epoch."""

    id: str
    preview: str
    name: str
    cwd: str
    created: int
    updated: int


def kept(thread: Mapping[str, Json]) -> Kept | None:
    """Read one thread from Codex's wire; None when it is not even named."""
    id_ = thread.get("id")
    if not isinstance(id_, str):
        return None
    return Kept(
        id=id_,
        preview=_text(thread.get("preview")),
        name=_text(thread.get("name")),
        cwd=_text(thread.get("cwd")),
        created=_seconds(thread.get("createdAt")),
        updated=_seconds(thread.get("updatedAt")),
    )


def threads_page(threads: Sequence[Kept], look: Look, *, now: float) -> str:
    """A line for each: how to name it, when it was last used, how it began."""
    width = max((len(printable(thread.id)) for thread in threads), default=0)
    return "".join(_entry(thread, look, width, now=now) for thread in threads)


def thread_line(thread: Kept) -> dict[str, object]:
    """One thread as a record for a program."""
    return {
        "schema": SCHEMA,
        "type": "thread",
        "id": thread.id,
        "name": thread.name or None,
        "preview": thread.preview,
        "cwd": thread.cwd,
        "createdAt": _iso(thread.created),
        "updatedAt": _iso(thread.updated),
    }


def age(seconds: float, *, now: float) -> str:
    """How long ago that was; the day, when it is long ago."""
    passed = max(0.0, now - seconds)
    for limit, unit, word in _STEPS:
        if passed < limit:
            return f"{int(passed / unit)} {word} ago"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _entry(thread: Kept, look: Look, width: int, *, now: float) -> str:
    name, when = printable(thread.id), f"{age(thread.updated, now=now):<{_WHEN}}"
    begin = " ".join(printable(thread.name or thread.preview, keep="\n\t").split())
    between = "\n  " if look.width < _NARROW else " " * (width - len(name) + 2)
    taken = _WHEN + 4 if look.width < _NARROW else width + _WHEN + 4
    begin = cut(begin, max(look.width - taken, _BEGIN_LEAST), more=look.signs.more)
    return f"{name}{between}{look.paint(when, Tone.QUIET)}  {begin}".rstrip() + "\n"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: Json) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**33 else 0


def _iso(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
