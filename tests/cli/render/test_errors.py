"""What a person reads when something fails."""

from __future__ import annotations

import pytest

from holdfast.app.failures import SettingInvalid
from holdfast.cli.failures import OutputLost, UsageWrong
from holdfast.cli.render.errors import error_page, next_step, other_steps
from holdfast.cli.render.style import FINE, PLAIN, Look
from holdfast.failures import Failure, Ids, UnexpectedError
from holdfast.workbench.failures import PublishedChanged

WIDE = Look(80, is_coloured=False, signs=FINE)
WRONG = SettingInvalid(variable="HOLDFAST_HOME", value="x", allowed="an absolute path")


def test_what_happened_what_it_means_what_to_do_and_the_code() -> None:
    assert error_page(WRONG, WIDE, is_verbose=False).splitlines() == [
        "✗ A setting is not valid",
        "  HOLDFAST_HOME is set to 'x', but must be an absolute path. Change it or unset",
        "  it.",
        "  → Change the setting, then try again.",
        "  CONFIG_SETTING_INVALID",
    ]


def test_details_are_for_those_who_ask() -> None:
    failure = UnexpectedError(error="E", text="t\x1b[2J", where="m:1").during("cli")
    failure.about(Ids(run_id="r1")).stamped(0.0)
    page = error_page(failure, Look(80, is_coloured=False, signs=PLAIN), is_verbose=True)

    assert page.splitlines()[-6:] == [
        "  phase: cli",
        "  time: 1970-01-01T00:00:00+00:00",
        "  run_id: r1",
        "  error: E",
        "  text: t\\x1b[2J",
        "  where: m:1",
    ]


@pytest.mark.promise("S1")
def test_what_else_can_be_done_comes_after_what_is_likeliest() -> None:
    changed = PublishedChanged(paths=("a",))

    assert error_page(changed, WIDE, is_verbose=False).splitlines()[-5:] == [
        f"  → {next_step(changed)}",
        *(f"    or: {each}" for each in other_steps(changed)),
        "  CONFLICT_PUBLISHED_CHANGED",
    ]
    assert next_step(changed) not in other_steps(changed)


def test_facts_never_steer_the_terminal() -> None:
    hostile = SettingInvalid(variable="A\x1b]0;owned\x07", value="\x9b31m", allowed="b\rc")

    page = error_page(hostile, WIDE, is_verbose=True)
    assert page.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (WRONG, "Change the setting, then try again."),
        (OutputLost(reason="full"), "Free some disk space, then try again."),
        (UsageWrong(problem="p", read_on="r"), "Change the input, then try again."),
    ],
)
def test_the_likeliest_action_comes_first_else_the_way_back(
    failure: Failure, expected: str
) -> None:
    assert next_step(failure) == expected
