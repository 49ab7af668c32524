"""The page of processes."""

from __future__ import annotations

from holdfast.cli.core.look import look
from holdfast.cli.core.processes_page import process_line, processes_page
from holdfast.exec.wire import ListedProcess, OperatorProcess

_LOOK = look(wanted="never", is_terminal=True, colourless=True, encoding="ascii", columns=60)


def _of(
    name: str, *argv: str, status: int | None = None, attached: bool = False
) -> OperatorProcess:
    listed = ListedProcess(
        name, argv, 7, False, 90_000, 1, exited=status is not None, exit_code=status, closed=False
    )
    return OperatorProcess("s", attached=attached, process=listed)


def test_a_line_for_each() -> None:
    processes = [
        _of("make-1", "make", "a b"),
        _of("cat-22", "cat", attached=True),
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
