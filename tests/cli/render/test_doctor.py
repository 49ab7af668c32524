"""The doctor's findings on a wide page, on a narrow one, and without fine signs."""

from __future__ import annotations

import re

import pytest

from holdfast.app.doctor.model import Finding, Machine, Report, Result, Status
from holdfast.cli.render.doctor import page, progress
from holdfast.cli.render.style import FINE, PLAIN, Look

LINUX = Machine(system="Linux", release="6.18", name="Debian 12")
OK = Result("a.one", "Alpha", "one", Finding(Status.OK, "good"), 0.1)
WARNING = Result(
    "a.two",
    "Alpha",
    "second",
    Finding(Status.WARNING, "a rather long finding that goes on for more than a line", "do this"),
    0.1,
)
FAILED = Result("b.three", "Beta", "three", Finding(Status.FAILED, "bad", "do that"), 0.1)
SKIPPED = Result("b.four", "Beta", "four", Finding(Status.SKIPPED, "not here"), 0.1)
ALL = Report("1.0", LINUX, (OK, WARNING, FAILED, SKIPPED))


def test_wide() -> None:
    none = FINE.none
    assert (
        page(ALL, Look(60, is_coloured=False, signs=FINE))
        == f"""\
Holdfast 1.0 on Debian 12

Alpha
  ✓ one      good
  ! second   a rather long finding that goes on for more
             than a line
             → do this

Beta
  ✗ three    bad
             → do that
  {none} four     not here

1 check failed: Holdfast cannot keep its promises here.
Do what the arrows say, then run again: holdfast doctor
"""
    )


def test_narrow_and_plain() -> None:
    assert (
        page(ALL, Look(30, is_coloured=False, signs=PLAIN))
        == """\
Holdfast 1.0 on Debian 12

Alpha
  + one
    good
  ! second
    a rather long finding that
    goes on for more than a
    line
    > do this

Beta
  x three
    bad
    > do that
  - four
    not here

1 check failed: Holdfast
cannot keep its promises here.
Do what the arrows say, then
run again: holdfast doctor
"""
    )


def test_colours_change_nothing_but_colours() -> None:
    plain = page(ALL, Look(60, is_coloured=False, signs=FINE))
    coloured = page(ALL, Look(60, is_coloured=True, signs=FINE))

    assert coloured != plain
    assert re.sub("\x1b\\[[0-9]+m", "", coloured) == plain


def test_findings_never_steer_the_terminal() -> None:
    hostile = Finding(Status.WARNING, "\x1b]52;c;eA==\x07 \x9b2J", "rm\r\x1b[A")
    report = Report("1.0", LINUX, (Result("a.one", "Alpha", "one", hostile, 0.0),))

    assert page(report, Look(80, is_coloured=False, signs=FINE)).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("results", "first"),
    [
        ((OK,), "Holdfast has all that it needs here."),
        ((OK, WARNING), "Holdfast works here, with 1 warning."),
        ((WARNING, WARNING), "Holdfast works here, with 2 warnings."),
        ((FAILED, FAILED), "2 checks failed: Holdfast cannot keep its promises here."),
    ],
)
def test_the_last_lines_say_what_to_do(results: tuple[Result, ...], first: str) -> None:
    lines = page(Report("1.0", LINUX, results), Look(80, is_coloured=False, signs=FINE))

    assert lines.splitlines()[-2] == first


def test_progress_fits_on_one_line() -> None:
    line = progress(done=3, total=20, waiting=["one", "two"], width=80)

    assert line == "Looking at this machine: 3 of 20, now one, two"
    assert len(progress(done=3, total=20, waiting=["title"] * 17, width=40)) == 39
