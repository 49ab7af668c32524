"""What the environment says, and what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.app.failures import SettingInvalid
from holdfast.app.settings import Settings, parse

PERSON = Path("/home/person")
PLAIN = Settings(
    state=PERSON / ".local/state/holdfast",
    config=PERSON / ".config/holdfast",
    cache=PERSON / ".cache/holdfast",
    runtime=PERSON / ".local/state/holdfast/run",
)
XDG = Settings(
    state=Path("/s/holdfast"),
    config=Path("/c/holdfast"),
    cache=Path("/k/holdfast"),
    runtime=Path("/r/holdfast"),
)
ONE_HOME = Settings(
    state=Path("/h/state"),
    config=Path("/h/config"),
    cache=Path("/h/cache"),
    runtime=Path("/h/run"),
)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, PLAIN),
        ({"HOLDFAST_HOME": "", "HOLDFAST_DEBUG": "", "NO_COLOR": ""}, PLAIN),
        ({"XDG_STATE_HOME": "relative", "XDG_RUNTIME_DIR": "relative"}, PLAIN),
        (
            {
                "XDG_STATE_HOME": "/s",
                "XDG_CONFIG_HOME": "/c",
                "XDG_CACHE_HOME": "/k",
                "XDG_RUNTIME_DIR": "/r",
            },
            XDG,
        ),
        ({"HOLDFAST_HOME": "/h", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": "/r"}, ONE_HOME),
    ],
)
def test_directories_follow_the_environment(environ: dict[str, str], expected: Settings) -> None:
    assert parse(environ, person=PERSON) == expected


@pytest.mark.parametrize(
    ("environ", "debug", "colourless"),
    [
        ({"HOLDFAST_DEBUG": "1"}, True, False),
        ({"HOLDFAST_DEBUG": "Yes"}, True, False),
        ({"HOLDFAST_DEBUG": "0"}, False, False),
        ({"NO_COLOR": "1"}, False, True),
        ({"TERM": "dumb"}, False, True),
        ({"TERM": "xterm-256color"}, False, False),
    ],
)
def test_how_much_is_said_and_in_which_colours(
    environ: dict[str, str], debug: bool, colourless: bool
) -> None:
    settings = parse(environ, person=PERSON)

    assert (settings.debug, settings.colourless) == (debug, colourless)


@pytest.mark.parametrize(
    ("environ", "codex"),
    [({}, "codex"), ({"HOLDFAST_CODEX": ""}, "codex"), ({"HOLDFAST_CODEX": "/opt/c"}, "/opt/c")],
)
def test_which_program_is_codex(environ: dict[str, str], codex: str) -> None:
    assert parse(environ, person=PERSON).codex == codex


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("HOLDFAST_HOME", "here/below", "an absolute path"),
        ("HOLDFAST_DEBUG", "perhaps", "1, true, yes, 0, false or no"),
    ],
)
def test_a_value_without_meaning_is_refused_by_name(
    variable: str, value: str, allowed: str
) -> None:
    with pytest.raises(SettingInvalid) as refused:
        parse({variable: value}, person=PERSON)

    assert refused.value == SettingInvalid(variable=variable, value=value, allowed=allowed)
    assert refused.value.kind.exit_status == 78


def test_variables_of_ours_that_nobody_knows_are_noticed() -> None:
    environ = {"HOLDFAST_HOEM": "/h", "HOLDFAST_DEBUG": "0", "HOLDFASTER": "1", "HOLDFAST_A": ""}

    assert parse(environ, person=PERSON).unknown == ("HOLDFAST_A", "HOLDFAST_HOEM")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run something as nobody's user")
def test_a_user_whom_nobody_knows_has_a_home() -> None:
    script = (
        "import os; from holdfast.app.settings import load; os.setuid(54321); print(load().state)"
    )
    env = {name: value for name, value in os.environ.items() if name != "HOME"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )

    assert (done.stdout.rpartition("/.local")[1:], done.stderr) == (
        ("/.local", "/state/holdfast\n"),
        "",
    )
