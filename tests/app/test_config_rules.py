"""What counts where several places say something, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.app import config_rules as config
from holdfast.app.config_rules import (
    KEYS,
    VARIABLES,
    Layer,
    Settled,
    Value,
    checked,
    settle,
    value_of,
)
from holdfast.app.failures import ConfigKeyRefused, ConfigKeyUnknown, SettingInvalid
from holdfast.app.sessions import RUNNERS
from holdfast.app.settings import KNOWN


def test_every_key_has_a_variable_that_is_known() -> None:
    assert set(VARIABLES) <= set(KNOWN)
    assert set(config.RUNNERS) == set(RUNNERS)


@pytest.mark.parametrize(
    ("key", "raw", "expected"),
    [
        ("runner", "native", "native"),
        ("runner", "nobody", None),
        ("model", "openai/x", "openai/x"),
        ("model", "", None),
        ("model", "a\x1bb", None),
        ("effort", "high", "high"),
        ("effort", "hard", None),
        ("effort", 5, None),
        ("color", "never", "never"),
        ("color", True, None),
        ("plain", True, True),
        ("plain", "yes", True),
        ("plain", "0", False),
        ("plain", 1, None),
        ("notify", "off", "off"),
        ("notify", "osc9", "osc9"),
        ("notify", "command, bell,bell", "bell,command"),
        ("notify", "off, bell", None),
        ("notify", "", None),
        ("notify", "smoke", None),
        ("notify", True, None),
        ("notify_command", "notify-send -a 'me, here'", "notify-send -a 'me, here'"),
        ("notify_command", "'' x", None),
        ("notify_command", "it's", None),
        ("notify_command", "a\nb", None),
        ("notify_command", ["a"], None),
        ("budget.steps", 5, 5),
        ("budget.steps", "5", 5),
        ("budget.steps", True, None),
        ("budget.steps", 0, None),
        ("budget.steps", 5.0, None),
        ("budget.steps", "-5", None),
        ("budget.steps", 10**18 - 1, 10**18 - 1),
        ("budget.steps", 10**18, None),
        ("budget.tokens", 10**400, None),
        ("budget.cost_usd", 2, 2.0),
        ("budget.cost_usd", "0.5", 0.5),
        ("budget.cost_usd", float("nan"), None),
        ("budget.cost_usd", "inf", None),
        ("budget.cost_usd", [], None),
        ("budget.cost_usd", 10**400, None),
    ],
)
def test_values_are_read(key: str, raw: object, expected: Value | None) -> None:
    assert KEYS[key].read(raw) == expected
    if expected is None:
        with pytest.raises(SettingInvalid):
            value_of(key, raw, where="here")


def test_a_file_is_checked_key_by_key() -> None:
    table: dict[str, object] = {"runner": "codex", "budget": {"steps": 3}}

    assert checked(table, file="f") == {"runner": "codex", "budget.steps": 3}
    with pytest.raises(ConfigKeyUnknown) as unknown:
        checked({"budget": {"step": 3}}, file="f")
    assert unknown.value.details == {"key": "budget.step", "file": "f", "nearest": "budget.steps"}
    assert unknown.value.kind.exit_status == 78
    for odd in ({"": 1}, {"\x1b": 1}, {"runner": {"x": 1}}, {"a": {"b": {"c": 1}}}):
        with pytest.raises(ConfigKeyUnknown):
            checked(odd, file="f")


def test_a_project_may_only_narrow() -> None:
    assert checked({"budget": {"steps": 3}}, file="f", narrows=True) == {"budget.steps": 3}
    for key, raw in (
        ("runner", "codex"),
        ("model", "a/b"),
        ("plain", True),
        ("color", "never"),
        ("notify", "off"),
        ("notify_command", "touch x"),
    ):
        with pytest.raises(ConfigKeyRefused):
            checked({key: raw}, file="f", narrows=True)


def test_no_variable_says_what_is_run() -> None:
    """Tools set variables by files of a project."""
    assert [key for key in KEYS if key not in VARIABLES.values()] == ["notify_command"]


def test_the_first_that_says_something_counts() -> None:
    layers = [
        Layer("flag", {"runner": "codex"}),
        Layer("user", {"runner": "native", "plain": True}),
    ]
    found = settle(layers)

    assert found["runner"] == Settled("codex", "flag")
    assert found["plain"] == Settled(True, "user")
    assert found["color"] == Settled("auto", "default")
    assert found["model"] == Settled(None, "default")


LIMIT = st.none() | st.integers(1, 9)


@given(flag=LIMIT, user=LIMIT, project=LIMIT)
def test_a_project_never_widens(flag: int | None, user: int | None, project: int | None) -> None:
    def layer(name: str, limit: int | None, *, narrows: bool = False) -> Layer:
        return Layer(name, {} if limit is None else {"budget.steps": limit}, narrows)

    without = settle([layer("flag", flag), layer("user", user)])["budget.steps"]
    found = settle([layer("flag", flag), layer("user", user), layer("p", project, narrows=True)])
    limits = [each for each in (without.value, project) if each is not None]

    assert without.value == (user if flag is None else flag)
    assert found["budget.steps"].value == min(limits, default=None)
