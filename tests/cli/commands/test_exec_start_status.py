"""A command that did not start ends as it would in a shell."""

from __future__ import annotations

import pytest

from holdfast.cli.commands.exec import start_status


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("no such file or directory", 127),
        ("No such file or directory (os error 2)", 127),
        ("permission denied", 126),
        ("Permission denied (os error 13)", 126),
        ("exec format error", 126),
        ("/gone: no such file or directory", 1),  # where it was to run
        ("cannot allocate memory", 1),
    ],
)
def test_why_it_did_not_start_has_a_status(reason: str, status: int) -> None:
    assert start_status(reason) == status
