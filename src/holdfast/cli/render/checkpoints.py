"""Lay out checkpoints, for a person and for a program."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.cli.render.drafts import NARROW, SCHEMA, iso
from holdfast.cli.render.storage import size_text
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.nouns import cut, printable
from holdfast.workbench.model import Checkpoint, Occasion, UncoveredPath, UncoveredReason

_FOR = {
    Occasion.AUTO: "automatic",
    Occasion.MANUAL: "yours",
    Occasion.PUBLISH: "publish",
    Occasion.PRE_RESTORE: "restore",
}
_WHY = {
    UncoveredReason.UNREADABLE: "you may not read it",
    UncoveredReason.CHANGING: "it was being written to",
    UncoveredReason.SPECIAL: "a fifo, a socket or a device",
    UncoveredReason.MOUNTED: "another file system",
    UncoveredReason.TOO_DEEP: "its path is too long",
    UncoveredReason.POLICY: "left out as asked",
}
assert _FOR.keys() == set(Occasion)
assert _WHY.keys() == set(UncoveredReason)
_MESSAGE_LEAST = 10
_MOST = 10


def checkpoints_page(checkpoints: Sequence[Checkpoint], look: Look, *, now: float) -> str:
    """A line for each: how to name it, when and why it was made, what is in it."""
    counts = [f"{each.files:,} files" for each in checkpoints]
    widest = max(map(len, counts), default=0)
    return "".join(
        _line(each, f"{count:>{widest}}", look, now=now)
        for each, count in zip(checkpoints, counts, strict=True)
    )


def made_page(checkpoint: Checkpoint, look: Look) -> str:
    """That a checkpoint was made, and how to go back to it."""
    sign = look.paint(look.signs.good, Tone.GOOD)
    lines = [f"{sign} {look.paint(printable(checkpoint.id), Tone.STRONG)}"]
    lines += look.wrap(_amount(checkpoint), indent=2)
    if checkpoint.uncovered:
        words = f"{checkpoint.uncovered:,} path(s) are not in it; holdfast checkpoint show"
        lines += look.wrap(f"{words} {printable(checkpoint.id)} says why.", indent=2)
    return "\n".join(lines) + "\n"


def checkpoint_page(
    checkpoint: Checkpoint, uncovered: Sequence[UncoveredPath], look: Look, *, now: float
) -> str:
    """All that is to be said about one."""
    lines = [look.paint(printable(checkpoint.id), Tone.STRONG)]
    if checkpoint.message:
        lines += look.wrap(printable(checkpoint.message), indent=2)
    when = f"{age(checkpoint.at_ms / 1000, now=now)} ({iso(checkpoint.at_ms)})"
    lines += look.wrap(f"{_FOR[checkpoint.occasion]}, {when}", indent=2)
    lines += look.wrap(_amount(checkpoint), indent=2)
    if uncovered:
        lines += ["  not in it, and never touched:"]
    lines += [f"    {printable(str(each.path))}  ({_WHY[each.reason]})" for each in uncovered]
    return "\n".join(lines) + "\n"


def checkpoint_record(checkpoint: Checkpoint) -> dict[str, object]:
    """A checkpoint for a program."""
    return {
        "schema": SCHEMA,
        "type": "checkpoint",
        "id": checkpoint.id,
        "createdAt": iso(checkpoint.at_ms),
        "occasion": checkpoint.occasion.value,
        "message": checkpoint.message,
        "origin": checkpoint.origin,
        "tree": checkpoint.tree.hex(),
        "files": checkpoint.files,
        "bytes": checkpoint.size,
        "uncoveredCount": checkpoint.uncovered,
    }


def unpublishable_page(uncovered: Sequence[UncoveredPath], look: Look) -> str:
    """What is in a draft and cannot be published, and why."""
    if not uncovered:
        return ""
    sign = look.paint(look.signs.careful, Tone.CAREFUL)
    lines = [f"{sign} Not published, because Holdfast cannot keep it:"]
    lines += [
        f"    {printable(str(each.path))}  ({_WHY[each.reason]})" for each in uncovered[:_MOST]
    ]
    if len(uncovered) > _MOST:
        lines.append(f"    {look.signs.more} and {len(uncovered) - _MOST:,} more")
    return "\n".join(lines) + "\n"


def uncovered_record(uncovered: Sequence[UncoveredPath]) -> list[dict[str, object]]:
    """What is not covered, for a program."""
    return [{"path": str(each.path), "lack": each.reason.value} for each in uncovered]


def _line(each: Checkpoint, count: str, look: Look, *, now: float) -> str:
    when = look.paint(f"{age(each.at_ms / 1000, now=now):<10}", Tone.QUIET)
    facts, message = f"{when}  {_FOR[each.occasion]:<9}  {count}", printable(each.message)
    if look.width < NARROW:
        shown = cut(message, look.width - 2, more=look.signs.more)
        return "".join(
            f"{line}\n" for line in (each.id, f"  {facts}", f"  {shown}") if line.strip()
        )
    room = max(look.width - len(each.id) - len(count) - 27, _MESSAGE_LEAST)
    shown = cut(message, room, more=look.signs.more)
    return f"{printable(each.id)}  {facts}  {shown}".rstrip() + "\n"


def _amount(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.files:,} files, {size_text(checkpoint.size)}"
