"""Who has a session: the last who attached, whatever those before still say."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.exec.failures import SessionAttached
from holdfast.exec.server.ownership import (
    Attached,
    Holding,
    SessionPolicy,
    Unattached,
    attach,
    detach,
    has_expired,
)

POLICY = SessionPolicy(detached_ttl=30.0, takeover=True)
POLITE = SessionPolicy(detached_ttl=30.0, takeover=False)


@pytest.mark.parametrize(
    ("holding", "policy", "expected"),
    [
        (Unattached(9.0), POLICY, (Attached(2), None)),
        (Unattached(9.0), POLITE, (Attached(2), None)),
        (Attached(1), POLICY, (Attached(2), 1)),
    ],
)
def test_attaching(
    holding: Holding, policy: SessionPolicy, expected: tuple[Attached, int | None]
) -> None:
    assert attach("s", holding, 2, policy) == expected


@pytest.mark.promise("X9")
def test_without_takeover_the_second_is_refused() -> None:
    with pytest.raises(SessionAttached) as refused:
        attach("s", Attached(1), 2, POLITE)

    assert refused.value == SessionAttached(session="s")


@pytest.mark.promise("X9")
@pytest.mark.parametrize(
    ("holding", "owner", "expected"),
    [
        (Attached(1), 1, Unattached(35.0)),
        (Attached(2), 1, Attached(2)),
        (Unattached(9.0), 1, Unattached(9.0)),
    ],
)
def test_detaching(holding: Holding, owner: int, expected: Holding) -> None:
    assert detach(holding, owner, 5.0, POLICY) == expected


def test_only_who_is_detached_for_long_enough_is_forgotten() -> None:
    assert [has_expired(Unattached(9.0), now) for now in (8.9, 9.0, 9.1)] == [False, True, True]
    assert not has_expired(Attached(1), 1e9)


class AnyOrder(RuleBasedStateMachine):
    """However connections come and go, the newest has the session until it goes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.holding: Holding = Attached(1)
        self.newest, self.gone = 1, set[int]()

    @rule()
    def comes(self) -> None:
        self.newest += 1
        self.holding, evicted = attach("s", self.holding, self.newest, POLICY)
        assert evicted is None or evicted == self.newest - 1

    @rule(who=st.integers(1, 50))
    def goes(self, who: int) -> None:
        if who <= self.newest:
            self.gone.add(who)
            self.holding = detach(self.holding, who, 0.0, POLICY)

    @invariant()
    def the_newest_has_it(self) -> None:
        expected = Unattached(30.0) if self.newest in self.gone else Attached(self.newest)
        assert self.holding == expected


AnyOrder.TestCase.settings = settings(max_examples=50, stateful_step_count=20)
TestAnyOrder = AnyOrder.TestCase
