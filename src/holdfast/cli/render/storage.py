"""Lay out how much room is used, and read how much may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import printable

SCHEMA = 1
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_LISTED_MOST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much room a project's checkpoints take, and how much there is."""

    checkpoints: int
    kept_bytes: int
    other_bytes: int
    free_bytes: int
    quota_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Spared:
    """What went, or would go."""

    checkpoints: tuple[str, ...]
    bytes_before: int
    bytes_after: int
    is_trial: bool
    quota_bytes: int | None = None
    manual_kept: int = 0


def size_text(count: int) -> str:
    """So many bytes, as a person reads them."""
    size, unit = float(count), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{count:,} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def size_of(text: str) -> int | None:
    """How many bytes a person means by 500M or 2 GiB; None if it has no meaning."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    return int(float(found[1]) * _STEP ** " kmgt".index(found[2].lower() or " "))


def storage_page(room: Room, look: Look) -> str:
    """What is used, and what may be."""
    is_full = room.kept_bytes > room.quota_bytes
    sign = look.paint(
        look.signs.careful if is_full else look.signs.good, Tone.CAREFUL if is_full else Tone.GOOD
    )
    count = f"{room.checkpoints:,} checkpoint{'' if room.checkpoints == 1 else 's'}"
    lines = [
        f"{sign} {look.paint(size_text(room.kept_bytes), Tone.STRONG)} in {count}",
        f"  {size_text(room.quota_bytes):>10}  may be used",
        f"  {size_text(room.other_bytes):>10}  index and reserve",
        f"  {size_text(room.free_bytes):>10}  free on that disk",
    ]
    if is_full:
        lines += look.wrap(f"{look.signs.leads_to} holdfast storage --prune --dry-run", indent=2)
    return "\n".join(lines) + "\n"


def spared_page(spared: Spared, look: Look) -> str:
    """What went or would go, and what that brings."""
    missed = _missed(spared, look)
    if not spared.checkpoints and spared.bytes_before <= spared.bytes_after:
        return missed or "Nothing to remove.\n"
    verb = "would go" if spared.is_trial else "went"
    count = len(spared.checkpoints)
    head = f"{count:,} checkpoint{'' if count == 1 else 's'} {verb}"
    sign = look.paint(look.signs.good, Tone.GOOD)
    sizes = (
        f"{size_text(spared.bytes_before)} {look.signs.leads_to} {size_text(spared.bytes_after)}"
    )
    listed = _listed(spared.checkpoints, look)
    return f"{sign} {look.paint(head, Tone.STRONG)}\n{listed}  {sizes}\n{missed}"


def _missed(spared: Spared, look: Look) -> str:
    """Why the rest is still above the quota, and what would help; nothing if it is below."""
    if spared.quota_bytes is None or spared.bytes_after <= spared.quota_bytes:
        return ""
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    lines = look.wrap(
        f"{sign} Still above {size_text(spared.quota_bytes)}: drafts and the newest checkpoints "
        "need the rest.",
        indent=0,
    )
    if spared.manual_kept:
        count = f"{spared.manual_kept:,} manual checkpoint{'s'[: spared.manual_kept != 1]}"
        lines += look.wrap(
            f"{look.signs.leads_to} {count} stayed; add --manual to remove old ones, too", indent=2
        )
    return "".join(f"{line}\n" for line in lines)


def storage_record(room: Room) -> dict[str, object]:
    """The use of room for a program."""
    return {
        "schema": SCHEMA,
        "type": "storage",
        "checkpoints": room.checkpoints,
        "bytes": room.kept_bytes,
        "otherBytes": room.other_bytes,
        "freeBytes": room.free_bytes,
        "quotaBytes": room.quota_bytes,
    }


def spared_record(spared: Spared) -> dict[str, object]:
    """What went, for a program."""
    return {
        "schema": SCHEMA,
        "type": "pruned",
        "checkpoints": list(spared.checkpoints),
        "bytesBefore": spared.bytes_before,
        "bytesAfter": spared.bytes_after,
        "dryRun": spared.is_trial,
        "quotaBytes": spared.quota_bytes,
        "manualKept": spared.manual_kept,
    }


def _listed(checkpoints: Sequence[str], look: Look) -> str:
    lines = [f"    {printable(each)}\n" for each in checkpoints[:_LISTED_MOST]]
    left_out = len(checkpoints) - _LISTED_MOST
    more = f"    {look.signs.more} and {left_out:,} more\n" if left_out > 0 else ""
    return "".join(lines) + more
