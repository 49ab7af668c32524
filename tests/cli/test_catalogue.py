"""All commands, as data."""

from __future__ import annotations

from importlib import import_module

from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.invocation import HANDLERS
from holdfast.cli.parser import is_group
from holdfast.failures import Kind


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


def test_every_command_is_carried_out_by_somebody() -> None:
    named = {command.name for command in COMMANDS if not is_group(command)}

    assert named == HANDLERS.keys()
    for module, function in HANDLERS.values():
        assert callable(getattr(import_module(f"holdfast.cli.{module}"), function))
