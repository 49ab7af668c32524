"""What is said of a sandbox."""

from __future__ import annotations

import pytest

from holdfast.cli.render.sandbox import (
    Attempt,
    Hindrance,
    Missed,
    Report,
    announcement,
    report_lines,
    report_record,
)


def test_of_a_whole_sandbox_only_what_is_not_kept_is_announced() -> None:
    assert announcement("full", (), ()) == ""
    assert announcement("full", (), ("a is a link",)) == "sandbox: a is a link\n"


def test_a_lesser_sandbox_is_announced_with_its_reasons() -> None:
    said = announcement("reduced", ("bubblewrap is not installed",), ("it sees names",))

    assert said.splitlines() == [
        "sandbox: of reduced strength, because bubblewrap is not installed",
        "sandbox: it sees names",
    ]


BLOCKED = (
    Attempt("evil.com:443", 3, "not on the list"),
    Attempt("evil.com:8080", 1, "not on the list"),
    Attempt("a.example:443", 1, "its name leads to a private address"),
    Attempt("", 2, "a request that names no host clearly"),
)


@pytest.mark.parametrize(
    ("report", "is_talkative", "lines"),
    [
        (Report(status=0, strength="full"), True, []),
        (Report(status=1, strength="full"), False, []),
        (
            Report(status=0, strength="full", blocked=BLOCKED, unnamed=7),
            False,
            [
                "sandbox: blocked evil.com:443 3 times (not on the list; --net evil.com allows it)",
                "sandbox: blocked evil.com:8080 (not on the list; --net evil.com:8080 allows it)",
                "sandbox: blocked a.example:443 (its name leads to a private address)",
                "sandbox: blocked 2 times (a request that names no host clearly)",
                "sandbox: and 7 connections to further hosts",
            ],
        ),
        (
            Report(status=127, strength="full", unseen=("/home/me/bin",)),
            False,
            ["sandbox: not seen inside: /home/me/bin (--read DIR shows it)"],
        ),
        (
            Report(status=2, strength="full"),
            True,
            ["sandbox: it could write nowhere and reach no host (--write DIR, --net HOST)"],
        ),
        (
            Report(
                status=0,
                strength="full",
                writable=("/w",),
                is_explained=True,
                missed=(
                    Missed("/home/me/x\ny", Hindrance.UNSEEN, 2),
                    Missed("/w/.envrc", Hindrance.PROTECTED),
                    Missed("/etc/hosts", Hindrance.OF_THE_SYSTEM),
                    Missed("/srv/x", Hindrance.READ_ONLY),
                ),
                missed_untold=3,
            ),
            False,
            [
                "sandbox: kept from /home/me/x\\ny 2 times"
                " (not seen; --read /home/me/x\\ny shows it)",
                "sandbox: kept from /w/.envrc (protected)",
                "sandbox: kept from /etc/hosts (of the system)",
                "sandbox: kept from /srv/x (read-only; --write DIR allows it)",
                "sandbox: and from 3 more (--json names 4)",
            ],
        ),
        (
            Report(status=2, strength="full", writable=("/a", "/b"), hosts=("x.org",)),
            True,
            ["sandbox: it could write in /a, /b and reach x.org (--write DIR, --net HOST)"],
        ),
    ],
)
def test_lines(report: Report, is_talkative: bool, lines: list[str]) -> None:
    assert list(report_lines(report, is_talkative=is_talkative)) == lines


def test_record() -> None:
    report = Report(
        status=3,
        strength="full",
        readable=("/p",),
        writable=("/p",),
        hosts=("a.org",),
        reached=(Attempt("a.org:443", 2),),
        blocked=BLOCKED[2:],
    )

    assert report_record(report) == {
        "schema": 1,
        "type": "sandbox",
        "exitCode": 3,
        "strength": "full",
        "lacks": [],
        "readable": ["/p"],
        "writable": ["/p"],
        "unseenPath": [],
        "allowedHosts": ["a.org"],
        "reached": [{"host": "a.org:443", "count": 2}],
        "blocked": [
            {"host": "a.example:443", "reason": "its name leads to a private address", "count": 1},
            {"host": None, "reason": "a request that names no host clearly", "count": 2},
        ],
        "uncounted": 0,
    }


def test_what_it_was_kept_from_is_told_where_it_was_asked_for() -> None:
    missed = (Missed("/x", Hindrance.PROTECTED, 3),)
    report = Report(status=0, strength="full", is_explained=True, missed=missed)
    record = report_record(report)
    assert record["keptFrom"] == [{"path": "/x", "reason": "protected", "count": 3}]
    assert record["keptFromUncounted"] == 0
    missed = tuple(Missed(f"/{n}", Hindrance.UNSEEN) for n in range(25))
    many = Report(status=0, strength="full", missed=missed)
    lines = list(report_lines(many, is_talkative=False))
    assert (len(lines), lines[-1]) == (21, "sandbox: and from 5 more (--json names 25)")
