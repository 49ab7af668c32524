"""The commands, as data."""

from __future__ import annotations

from holdfast import __version__
from holdfast.cli.commands import COMMANDS, COMMON, GUIDE, TOP, VERSION_LINE
from holdfast.failures import Kind


def test_the_version_line_is_that_of_the_package() -> None:
    assert f"holdfast {__version__}\n" == VERSION_LINE


def test_no_flag_has_two_meanings() -> None:
    for command in COMMANDS:
        flags = [flag for option in (*TOP, *COMMON, *command.options) for flag in option.flags]
        assert len(flags) == len(set(flags))


def test_every_command_teaches_by_example() -> None:
    assert [command.name for command in COMMANDS if not command.examples] == []
    assert [command.name for command in COMMANDS if f"holdfast {command.name}" not in GUIDE] == []


def test_help_can_be_written_anywhere() -> None:
    assert f"{GUIDE}{COMMANDS}".isascii()


def test_every_exit_status_is_explained() -> None:
    used = {kind.exit_status for kind in Kind} | {0, 130, 141, 143}

    assert [status for status in sorted(used) if f" {status} " not in GUIDE] == []
