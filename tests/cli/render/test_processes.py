"""The page of processes."""

from __future__ import annotations

import pytest

from holdfast.cli.render.processes import (
    Seen,
    detached_line,
    detached_note,
    end_line,
    ended_line,
    ended_note,
    gap_line,
    is_internal,
    orphan_line,
    orphans_note,
    output_line,
    process_line,
    processes_page,
)
from holdfast.cli.render.style import look
from holdfast.exec.model import AWAITS_READER, Detached, Orphan, Output, Page

_LOOK = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=60)


def _of(
    name: str,
    *argv: str,
    status: int | None = None,
    is_attached: bool = False,
    stalled: str | None = None,
    is_lost: bool = False,
) -> Seen:
    return Seen(
        id=name,
        session="s",
        is_attached=is_attached,
        argv=argv,
        pid=7,
        tty=False,
        started_at_ms=90_000,
        status=status,
        stalled=stalled,
        is_lost=is_lost,
    )


def test_a_line_for_each() -> None:
    processes = [
        _of("make-1", "make", "a b"),
        _of("cat-22", "cat", is_attached=True),
        _of("yes-4", "yes", is_attached=True, stalled=AWAITS_READER),
        _of("dd-5", "dd", stalled="DISK_FULL"),
        _of("sh-3", "sh", "-c", "\x1b[2J" + "x" * 80, status=137),
        _of("sh-4", "sh", status=137, is_lost=True),
        _of("p-6", "/usr/bin/python3", "-P", "-m", "holdfast.cli.main", "host", "s1"),
        _of("p-7", "/usr/bin/python3", "-P", "-m", "holdfast.runners.x", "a.toml"),
        _of("p-8", "/usr/bin/python3", "-P", "-m", "pytest"),
    ]

    assert processes_page(processes, _LOOK, now=100.0).splitlines() == [
        "make-1  running         10 s ago  make 'a b'",
        "cat-22  attached        10 s ago  cat",
        "yes-4   waits (reader)  10 s ago  yes",
        "dd-5    waits (disk)    10 s ago  dd",
        "sh-3    ended (137)     10 s ago  sh -c '\\x1b[2Jxxxxxxxxx...",
        "sh-4    lost            10 s ago  sh",
        "p-6     running         10 s ago  holdfast host s1",
        "p-7     running         10 s ago  holdfast.runners.x a.toml",
        "p-8     running         10 s ago  /usr/bin/python3 -P -m...",
    ]


def test_a_record_for_a_program() -> None:
    assert process_line(_of("sh-3", "sh", status=0, stalled="DISK_FULL")) == {
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
        "stalled": "DISK_FULL",
        "lost": False,
    }


def test_orphans_are_told_with_their_numbers() -> None:
    note = orphans_note([Orphan(7, "sleep 100"), Orphan(12, "sh -c \x1b[2J")])

    assert note.splitlines() == [
        "These run without a server; holdfast stop --orphans ends them:",
        "  7  sleep 100",
        "  12  sh -c \\x1b[2J",
    ]


def test_an_orphan_has_the_members_of_any_process() -> None:
    record = orphan_line(Orphan(7, "sleep 100"))

    assert record.keys() == process_line(_of("sh-3", "sh")).keys()
    assert (record["type"], record["pid"], record["argv"]) == ("orphan", 7, ["sleep 100"])


def test_how_stopping_went_is_told() -> None:
    assert ended_note("make-1", 143) == "make-1 has ended (143)."
    assert ended_line("make-1", "s", None) == {
        "schema": 1,
        "type": "stopped",
        "id": "make-1",
        "session": "s",
        "exitCode": None,
    }


def test_output_is_told_to_a_program_piece_by_piece() -> None:
    assert [gap_line(3), output_line(Output(3, "stdout", b"\xff\n"))] == [
        {"schema": 1, "type": "gap", "firstSeq": 3},
        {"schema": 1, "type": "output", "seq": 3, "stream": "stdout", "dataBase64": "/wo="},
    ]
    assert end_line(Page((), 5, 1, closed=True)) == {
        "schema": 1,
        "type": "end",
        "exitCode": 1,
        "closed": True,
        "lost": False,
    }


def test_what_processes_left_running_is_named_with_its_origin() -> None:
    of, lost = Detached(7, "sleep 9\x1b[2J", "s", "p-1"), Detached(8, "cat", "s")
    assert detached_note([of, lost]).splitlines() == [
        "Started by processes above, and left running (holdfast stop PROCESS ends a process with "
        "all that it started):",
        "  7  sleep 9\\x1b[2J  (of p-1)",
        "  8  cat",
    ]
    line = detached_line(of)
    assert (line["type"], line["id"], line["session"], line["pid"]) == ("detached", "p-1", "s", 7)
    assert detached_line(lost)["id"] is None


@pytest.mark.parametrize(
    ("argv", "is_ours"),
    [
        (("python", "-P", "-m", "holdfast.cli.main", "host", "session_1"), True),
        (("python", "-m", "holdfast.exec.keeper"), True),
        (("python", "-m", "pytest"), False),
        (("holdfast.cli", "-m"), False),
        (("make",), False),
    ],
)
def test_what_is_of_holdfast_itself(argv: tuple[str, ...], is_ours: bool) -> None:
    seen = Seen(
        id="x",
        session="s",
        is_attached=False,
        argv=argv,
        pid=1,
        tty=False,
        started_at_ms=0,
        status=None,
    )

    assert is_internal(seen) is is_ours
