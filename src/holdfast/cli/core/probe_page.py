"""Lay out which ways out of a sandbox are closed, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.cli.core.look import Look, Tone
from holdfast.nouns import cut, printable

SCHEMA = 1
CONTAINED, ESCAPED = "contained", "escaped"


@dataclass(frozen=True, slots=True)
class Tried:
    """One way out: what was tried, what became of it, and what refused it."""

    id: str
    tries: str
    verdict: str
    why: str


def probe_page(tried: Sequence[Tried], strength: str, look: Look) -> str:
    """A line for each, and the sum of them."""
    marks = {
        CONTAINED: look.paint(look.signs.good, Tone.GOOD),
        ESCAPED: look.paint(look.signs.bad, Tone.BAD),
    }
    widest = max((len(each.id) for each in tried), default=0)
    lines: list[str] = []
    for each in tried:
        mark = marks.get(each.verdict, look.paint(look.signs.none, Tone.QUIET))
        said = printable(each.tries if each.verdict != "not applicable" else each.why)
        room = look.width - widest - 6
        lines.append(f"  {mark} {each.id:<{widest}}  {cut(said, room, more=look.signs.more)}")
    count = Counter(each.verdict for each in tried)
    parts = [f"{count[CONTAINED]} of {len(tried)} contained"]
    parts += [f"{number} {verdict}" for verdict, number in count.items() if verdict != CONTAINED]
    return "\n".join([*lines, "", f"{', '.join(parts)} (strength: {strength})"]) + "\n"


def probe_record(tried: Sequence[Tried], strength: str) -> dict[str, object]:
    """The same for a program; what could not be tried here is neither true nor false."""
    contained = {CONTAINED: True, ESCAPED: False}
    return {
        "schema": SCHEMA,
        "strength": strength,
        "probes": [
            {
                "id": each.id,
                "tries": each.tries,
                "contained": contained.get(each.verdict),
                "verdict": each.verdict,
                "reason": each.why or None,
            }
            for each in tried
        ],
        "summary": dict(Counter(each.verdict for each in tried)),
    }
