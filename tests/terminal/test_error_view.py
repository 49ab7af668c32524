"""Whatever goes wrong looks the same: a title, what it means, what to do, and details."""

from __future__ import annotations

import pytest

from holdfast.failures import Action, Failure, Kind, to_wire
from holdfast.host.failures import HostCrashed, HostGone
from holdfast.terminal.error_view import offers_of, trouble_of
from holdfast.terminal.model import Offer
from holdfast.terminal.slash_commands import (
    HoldfastCommand,
    InvalidLine,
    PromptText,
    TerminalCommand,
    parse_line,
)
from holdfast.workbench.failures import ConsentRequired


@pytest.mark.promise("S1")
@pytest.mark.promise("A2")
def test_a_crash_is_told_in_the_words_that_were_promised() -> None:
    wire = to_wire(HostCrashed(session="s1", turn=3, reason="it was killed"))
    trouble = trouble_of(wire, at="12:00")

    assert trouble.title == "The agent crashed"
    assert trouble.message == (
        "The agent crashed and lost its current turn. Your conversation history is saved. "
        "Press Enter to continue."
    )
    assert trouble.offers == (Offer("Try again", "/retry"), Offer("Review the draft", "/diff"))
    assert trouble.details[0] == "code: HOST_CRASHED"
    assert "time: 12:00" in trouble.details
    assert "reason: it was killed" in trouble.details


@pytest.mark.promise("A7")
def test_a_backend_that_keeps_dying_is_restarted_by_the_likeliest_key() -> None:
    assert trouble_of(to_wire(HostGone(starts=3))).offers[0] == Offer("Restart it", "/restart")


@pytest.mark.promise("W12")
def test_who_has_not_agreed_is_asked_by_the_likeliest_key_and_then_it_is_tried_again() -> None:
    required = ConsentRequired(project="/p", provider="a b", scope="all")
    (offer,) = trouble_of(to_wire(required)).offers

    assert offer == Offer("Give consent", "/consent give 'a b'", then="/retry")
    meant = parse_line(offer.line, draft="d")
    assert meant == HoldfastCommand(("consent", "give", "a b"))


class _Everything(
    Failure,
    code="TEST_EVERYTHING",
    kind=Kind.INVALID,
    title="All of it",
    user_message="Everything is wrong.",
    actions=tuple(Action),
):
    """Something about which everything can be done."""


def test_every_action_is_a_line_that_can_be_typed_and_is_offered_once() -> None:
    offers = offers_of(_Everything())

    assert len({each.line for each in offers}) == len(offers)
    for each in offers:
        line = f"{each.line}x" if each.line.endswith(" ") else each.line
        meant = parse_line(line, draft="d")
        assert isinstance(meant, HoldfastCommand | TerminalCommand | PromptText), (each, meant)
        assert not isinstance(meant, InvalidLine)
