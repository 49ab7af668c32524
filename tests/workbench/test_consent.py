"""What may go to a provider, and what a retry may not add."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.failures import Failure
from holdfast.workbench.consent import (
    Consent,
    Scope,
    Sending,
    in_force,
    require_consent,
    require_no_more,
)
from holdfast.workbench.failures import ConsentRequired
from tests.workbench.modelled import at

ALL, SOURCE, TESTS = Scope(), Scope((at("src"),)), Scope((at("tests"),))
SENDING = Sending("project", "openai", "s1", SOURCE)
GIVEN = Consent("project", "openai", SOURCE, is_given=True, at_ms=1)
WITHDRAWN = replace(GIVEN, is_given=False)


def refusal(sending: Sending, records: list[Consent]) -> Failure | None:
    try:
        require_consent(sending, records)
    except ConsentRequired as failure:
        return failure
    return None


@pytest.mark.promise("W12")
@pytest.mark.parametrize(
    ("sending", "records", "is_allowed"),
    [
        (SENDING, [], False),
        (SENDING, [GIVEN], True),
        (SENDING, [replace(GIVEN, scope=ALL)], True),
        (replace(SENDING, scope=Scope((at("src/deep"),))), [GIVEN], True),
        (replace(SENDING, scope=TESTS), [GIVEN], False),
        (replace(SENDING, scope=ALL), [GIVEN], False),
        (replace(SENDING, provider="anthropic"), [GIVEN], False),
        (replace(SENDING, project="other"), [GIVEN], False),
        (SENDING, [replace(GIVEN, session="s1")], True),
        (SENDING, [replace(GIVEN, session="s2")], False),
        (SENDING, [GIVEN, WITHDRAWN], False),
        (SENDING, [GIVEN, WITHDRAWN, GIVEN], True),
        (SENDING, [GIVEN, replace(WITHDRAWN, provider="anthropic")], True),
    ],
)
def test_consent(sending: Sending, records: list[Consent], is_allowed: bool) -> None:
    failure = refusal(sending, records)

    assert (failure is None) is is_allowed
    if failure is not None:
        assert failure.kind.exit_status == 3


@pytest.mark.promise("W12")
@pytest.mark.parametrize(
    ("instead", "is_allowed"),
    [
        (SENDING, True),
        (replace(SENDING, provider="anthropic"), True),
        (replace(SENDING, provider="mistral"), False),
        (replace(SENDING, scope=ALL), False),
        (replace(SENDING, scope=TESTS), False),
        (replace(SENDING, project="other"), False),
    ],
)
def test_whoever_takes_over_gets_no_more(instead: Sending, is_allowed: bool) -> None:
    everything = [replace(GIVEN, scope=ALL), replace(GIVEN, provider="anthropic")]
    if is_allowed:
        require_no_more(SENDING, instead, everything)
    else:
        with pytest.raises(ConsentRequired):
            require_no_more(SENDING, instead, everything)


scopes = st.lists(st.sampled_from([at("a"), at("a/b"), at("c")]), max_size=3).map(
    lambda paths: Scope(tuple(paths))
)


@given(scopes, scopes, scopes)
def test_covering_goes_on(one: Scope, two: Scope, three: Scope) -> None:
    assert one.covers(one)
    if one.covers(two) and two.covers(three):
        assert one.covers(three)


def test_what_holds_is_what_was_given_since_it_was_last_withdrawn() -> None:
    other, later = replace(GIVEN, provider="anthropic"), replace(GIVEN, at_ms=2)

    assert in_force([]) == ()
    assert in_force([GIVEN, other, later]) == (GIVEN, other, later)
    assert in_force([GIVEN, other, WITHDRAWN]) == (other,)
    assert in_force([GIVEN, WITHDRAWN, other, later]) == (other, later)
