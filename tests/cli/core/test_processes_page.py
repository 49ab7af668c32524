"""The page of processes."""

from __future__ import annotations

from holdfast.cli.core.look import look
from holdfast.cli.core.processes_page import (
    Seen,
    ended_note,
    orphan_line,
    orphans_note,
    process_line,
    processes_page,
)
from holdfast.exec.model import Orphan

_LOOK = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=60)


def _of(name: str, *argv: str, status: int | None = None, is_attached: bool = False) -> Seen:
    return Seen(
        id=name,
        session="s",
        is_attached=is_attached,
        argv=argv,
        pid=7,
        tty=False,
        started_at_ms=90_000,
        status=status,
    )


def test_a_line_for_each() -> None:
    processes = [
        _of("make-1", "make", "a b"),
        _of("cat-22", "cat", is_attached=True),
        _of("sh-3", "sh", "-c", "\x1b[2J" + "x" * 80, status=137),
    ]

    assert processes_page(processes, _LOOK, now=100.0).splitlines() == [
        "make-1  running      10 s ago  make 'a b'",
        "cat-22  attached     10 s ago  cat",
        "sh-3    ended (137)  10 s ago  sh -c '\\x1b[2Jxxxxxxxxxxxx...",
    ]


def test_a_record_for_a_program() -> None:
    assert process_line(_of("sh-3", "sh", status=0)) == {
        "schema": 1,
        "type": "process",
        "id": "sh-3",
        "session": "s",
        "attached": False,
        "argv": ["sh"],
        "pid": 7,
        "tty": False,
        "startedAtMs": 90_000,
        "exitCode": 0,
    }


def test_orphans_are_told_with_their_numbers() -> None:
    note = orphans_note([Orphan(7, "sleep 100"), Orphan(12, "sh -c \x1b[2J")])

    assert note.splitlines() == [
        "These run without a server; kill ends them, by number:",
        "  7  sleep 100",
        "  12  sh -c \\x1b[2J",
    ]


def test_an_orphan_has_the_members_of_any_process() -> None:
    record = orphan_line(Orphan(7, "sleep 100"))

    assert record.keys() == process_line(_of("sh-3", "sh")).keys()
    assert (record["type"], record["pid"], record["argv"]) == ("orphan", 7, ["sleep 100"])


def test_how_stopping_went_is_told() -> None:
    assert ended_note("make-1", 143) == "make-1 has ended (143)."
    assert ended_note("make-1", None) == "make-1 does not end."
