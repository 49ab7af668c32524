"""Leave is for exactly what was shown, and what is shown hides nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.agent.permission_rules import (
    SHOWN_CHARS_MAX,
    PermissionAnswer,
    PermissionDecision,
    PermissionMode,
    PermissionRequest,
    PermissionScope,
    decide,
    detail_of,
    single_line,
    title_of,
    visible,
)

WISH = PermissionRequest(
    PermissionScope.NETWORK, "run a command that reaches the network", (("command", "curl x"),)
)


@pytest.mark.parametrize(
    ("wish", "asking", "granted", "verdict"),
    [
        (WISH, PermissionMode.ASK, (), PermissionDecision.ASK),
        (WISH, PermissionMode.NEVER, (), PermissionDecision.REFUSED),
        (WISH, PermissionMode.ASK, (WISH.digest,), PermissionDecision.ALLOWED),
        (WISH, PermissionMode.NEVER, (WISH.digest,), PermissionDecision.ALLOWED),
        (
            PermissionRequest(
                PermissionScope.OPEN, WISH.does, (("command", "x" * SHOWN_CHARS_MAX),)
            ),
            PermissionMode.ASK,
            (),
            PermissionDecision.REFUSED,
        ),
    ],
)
def test_what_is_done_with_a_wish(
    wish: PermissionRequest,
    asking: PermissionMode,
    granted: tuple[str, ...],
    verdict: PermissionDecision,
) -> None:
    assert decide(wish, asking, granted)[0] is verdict


@pytest.mark.promise("C19")
@pytest.mark.parametrize(
    "other",
    [
        PermissionRequest(PermissionScope.OPEN, WISH.does, WISH.facts),
        PermissionRequest(PermissionScope.NETWORK, WISH.does, (("command", "curl x "),)),
        PermissionRequest(PermissionScope.NETWORK, WISH.does, (("command", "curl"), ("", " x"))),
        PermissionRequest(PermissionScope.NETWORK, WISH.does, (*WISH.facts, ("env", ""))),
    ],
)
def test_leave_for_one_is_none_for_another(other: PermissionRequest) -> None:
    assert decide(other, PermissionMode.ASK, (WISH.digest,))[0] is PermissionDecision.ASK


@pytest.mark.promise("C22")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("$(touch x)", "$(touch x)"),
        ("-x", "-x"),
        ("a\nMay the agent\n", "a\n    May the agent\n    "),
        ("\x1b[2Ja\rb", "<U+001B>[2Ja<U+000D>b"),
        ("\u202eevil\u200b", "<U+202E>evil<U+200B>"),
        ("\u2028x\U000e0041", "<U+2028>x<U+E0041>"),
        ("tab\there", "tab\there"),
    ],
)
def test_nothing_in_a_value_goes_unseen(value: str, shown: str) -> None:
    assert visible(value) == shown


@pytest.mark.promise("C22")
@settings(deadline=None)
@given(st.text(), st.text())
def test_a_value_cannot_speak_for_us(name: str, value: str) -> None:
    wish = PermissionRequest(
        PermissionScope.OPEN, "run a command", (("file", name), ("command", value))
    )
    lines = detail_of(wish).split("\n")

    assert title_of(wish) == "May the agent run a command?"
    assert [line for line in lines if not line.startswith("    ")] == [
        f"file: {visible(name).partition(chr(10))[0]}",
        f"command: {visible(value).partition(chr(10))[0]}",
    ]
    assert not any(
        unicodedata.category(each) in {"Cc", "Cf", "Zl"} for each in "".join(lines) if each != "\t"
    )


def test_leave_does_not_depend_on_why() -> None:
    why = PermissionRequest(WISH.reach, WISH.does, WISH.facts, why="to fetch\nit")

    assert why.digest == WISH.digest
    assert detail_of(why) == "command: curl x\nthe agent says why: to fetch\n    it"


def test_only_a_server_can_be_allowed_for_good() -> None:
    assert WISH.answers == (
        PermissionAnswer.ONCE,
        PermissionAnswer.SESSION,
        PermissionAnswer.REFUSE,
    )
    server = PermissionRequest(PermissionScope.SERVER, "start an MCP server", ())
    assert server.answers == (
        PermissionAnswer.ALWAYS,
        PermissionAnswer.SESSION,
        PermissionAnswer.REFUSE,
    )


def test_any_value_fits_in_a_line() -> None:
    assert single_line("make\n  test\x1b") == "make test<U+001B>"
    assert single_line("x" * 10**6) == "x" * 119 + "…"
