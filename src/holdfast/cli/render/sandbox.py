"""Lay out which ways out of a sandbox are closed, for a person and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.cli.render.style import Look, Tone
from holdfast.nouns import cut, printable

PROBE_SCHEMA = 1
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
        "schema": PROBE_SCHEMA,
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


# Say what a sandbox was like and what it stopped, for a person and for a program.

SCHEMA = 1
_LINES_MOST = 20
_NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Attempt:
    """Connections to one host: how many, and why they were stopped, if they were."""

    host: str
    count: int
    why: str = ""


class Hindrance(StrEnum):
    """Why a file was out of reach."""

    UNSEEN = "not seen"
    PROTECTED = "protected"
    OF_THE_SYSTEM = "of the system"
    READ_ONLY = "read-only"


@dataclass(frozen=True, slots=True)
class Missed:
    """A file that the command was kept from: why, and how often it tried."""

    path: str
    why: Hindrance
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that can be known of one command in a sandbox, after it has ended."""

    status: int
    strength: str
    lacks: Sequence[str] = ()
    readable: Sequence[str] = ()
    writable: Sequence[str] = ()
    unseen: Sequence[str] = ()
    hosts: Sequence[str] = ()
    reached: Sequence[Attempt] = ()
    blocked: Sequence[Attempt] = ()
    unnamed: int = 0
    is_explained: bool = False
    missed: Sequence[Missed] = ()
    missed_untold: int = 0


def announcement(strength: str, reasons: Sequence[str], lacks: Sequence[str]) -> str:
    """The note before the command starts; empty for a complete sandbox."""
    lines: list[str] = []
    if strength != "full":
        lines.append(f"sandbox: of {strength} strength, because {'; '.join(reasons)}")
    lines += [f"sandbox: {lack}" for lack in lacks]
    return "".join(f"{line}\n" for line in lines)


def report_lines(report: Report, *, is_talkative: bool) -> Iterator[str]:
    """The note at the end: what was refused, and the flags that would allow it."""
    for each in report.blocked:
        times = "" if each.count == 1 else f" {each.count} times"
        host = f" {each.host}" if each.host else ""
        remedy = f"; --net {_rule(each.host)} allows it" if each.why == "not on the list" else ""
        yield f"sandbox: blocked{host}{times} ({each.why}{remedy})"
    if report.unnamed:
        yield f"sandbox: and {report.unnamed} connections to further hosts"
    yield from _missed_lines(report)
    if report.status == _NOT_FOUND and report.unseen:
        yield f"sandbox: not seen inside: {', '.join(report.unseen)} (--read DIR shows it)"
    elif report.status and is_talkative:
        where = ", ".join(report.writable) or "nowhere"
        net = ", ".join(report.hosts) or "no host"
        yield f"sandbox: it could write {_in(where)} and reach {net} (--write DIR, --net HOST)"


def _missed_lines(report: Report) -> Iterator[str]:
    """The files that it was kept from, and what would have allowed them, if anything does."""
    for each in report.missed[:_LINES_MOST]:
        path, times = printable(each.path), "" if each.count == 1 else f" {each.count} times"
        remedies = {
            Hindrance.UNSEEN: f"; --read {path} shows it",
            Hindrance.READ_ONLY: "; --write DIR allows it",
        }
        yield f"sandbox: kept from {path}{times} ({each.why}{remedies.get(each.why, '')})"
    more = len(report.missed[_LINES_MOST:]) + report.missed_untold
    if more:
        yield f"sandbox: and from {more} more (--json names {len(report.missed)})"


def report_record(report: Report) -> dict[str, object]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "type": "sandbox",
        "exitCode": report.status,
        "strength": report.strength,
        "lacks": list(report.lacks),
        "readable": list(report.readable),
        "writable": list(report.writable),
        "unseenPath": list(report.unseen),
        "allowedHosts": list(report.hosts),
        "reached": [{"host": each.host, "count": each.count} for each in report.reached],
        "blocked": [
            {"host": each.host or None, "reason": each.why, "count": each.count}
            for each in report.blocked
        ],
        "uncounted": report.unnamed,
        **(_missed_record(report) if report.is_explained else {}),
    }


def _missed_record(report: Report) -> dict[str, object]:
    return {
        "keptFrom": [
            {"path": each.path, "reason": each.why.value, "count": each.count}
            for each in report.missed
        ],
        "keptFromUncounted": report.missed_untold,
    }


def _rule(host: str) -> str:
    """A host as --net takes it; ports 80 and 443 are implied."""
    name, _, port = host.rpartition(":")
    return name if port in {"80", "443"} else host


def _in(where: str) -> str:
    return where if where == "nowhere" else f"in {where}"
