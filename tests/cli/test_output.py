"""Standard output, to the last byte."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.cli.output import write_bytes

WRITE = "from holdfast.cli.output import write; write('all of it')"
ABANDON = """
import sys
from holdfast.cli.output import abandon, write
try:
    write('x')
except OSError as error:
    abandon(1)
    sys.stderr.write(type(error).__name__)
"""


def test_all_of_it_arrives_before_the_next_line_runs() -> None:
    script = f"{WRITE}; import os; os._exit(0)"  # nothing is flushed after this
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout == b"all of it"


@pytest.mark.parametrize(("redirection", "error"), [(">&-", "OSError"), ("> /dev/full", "OSError")])
def test_what_does_not_arrive_raises_and_can_be_given_up(redirection: str, error: str) -> None:
    command = ["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, ABANDON]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, error)


def test_what_the_encoding_lacks_is_shown_as_an_escape() -> None:
    script = "from holdfast.cli.output import write; write('zw\\xf6lf \\ud800')"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", script],
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )

    assert done.stdout == b"zw\\xf6lf \\ud800"


def test_bytes_are_written_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_bytes(b"\xff\x00\x1b")

    assert capfdbinary.readouterr().out == b"\xff\x00\x1b"


def test_where_standard_output_was_closed_bytes_do_not_arrive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="descriptor"):
        write_bytes(b"x")
