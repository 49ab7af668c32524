"""Lay out what the doctor found, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from holdfast.app.doctor.model import Report, Result, Status
from holdfast.cli.render.style import Look, Signs, Tone
from holdfast.nouns import printable

_NARROW = 60  # below this the finding gets a line of its own
_TONES = {
    Status.OK: Tone.GOOD,
    Status.WARNING: Tone.CAREFUL,
    Status.FAILED: Tone.BAD,
    Status.SKIPPED: Tone.QUIET,
}


def page(report: Report, look: Look) -> str:
    """The whole report; its last line says what to do."""
    machine = report.machine
    system = machine.name or f"{machine.system} {machine.release}"
    head = look.wrap(printable(f"Holdfast {report.version} on {system}"), indent=0)
    lines = [look.paint(line, Tone.STRONG) for line in head]
    indent = 5 + max((len(result.title) for result in report.results), default=0) + 2
    for group, results in groupby(report.results, key=lambda result: result.group):
        lines += ["", look.paint(group, Tone.STRONG)]
        for result in results:
            lines += _entry(result, look, indent if look.width >= _NARROW else 0)
    lines.append("")
    for sentence in _verdict(report):
        lines += look.wrap(sentence, indent=0)
    return "\n".join(lines) + "\n"


def _entry(result: Result, look: Look, indent: int) -> Iterator[str]:
    """One check: its sign and title, its finding beside or below, its remedy below that."""
    status = result.finding.status
    sign = look.paint(_sign(status, look.signs), _TONES[status])
    column = indent or 4
    finding = look.wrap(printable(result.finding.text), indent=column)
    if indent:
        title = f"  {sign} {result.title:<{indent - 4}}"
        yield title + finding.pop(0).lstrip() if finding else title
    else:
        yield f"  {sign} {result.title}"
    yield from finding
    if result.finding.remedy is not None:
        yield from _remedy(printable(result.finding.remedy), look, column)


def _remedy(remedy: str, look: Look, column: int) -> Iterator[str]:
    arrow = look.signs.leads_to
    first, *rest = look.wrap(remedy, indent=column + len(arrow) + 1)
    yield " " * column + look.paint(f"{arrow} {first.lstrip()}", Tone.STRONG)
    for line in rest:
        yield " " * (column + len(arrow) + 1) + look.paint(line.lstrip(), Tone.STRONG)


def _sign(status: Status, signs: Signs) -> str:
    return {
        Status.OK: signs.good,
        Status.WARNING: signs.careful,
        Status.FAILED: signs.bad,
        Status.SKIPPED: signs.none,
    }[status]


def _verdict(report: Report) -> tuple[str, str]:
    failed, warnings = report.count(Status.FAILED), report.count(Status.WARNING)
    if failed:
        what = "1 check failed" if failed == 1 else f"{failed} checks failed"
        return (
            f"{what}: Holdfast cannot keep its promises here.",
            "Do what the arrows say, then run again: holdfast doctor",
        )
    if warnings:
        what = "1 warning" if warnings == 1 else f"{warnings} warnings"
        return f"Holdfast works here, with {what}.", "The arrows say what would make it better."
    return "Holdfast has all that it needs here.", "Next: holdfast --help"


def progress(*, done: int, total: int, waiting: Sequence[str], width: int) -> str:
    """One line that says what is being waited for."""
    return f"Looking at this machine: {done} of {total}, now {', '.join(waiting)}"[: width - 1]
