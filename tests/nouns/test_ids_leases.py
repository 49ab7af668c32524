"""Of two claims the newer wins, and nobody is left in doubt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.nouns import Lease, LeaseInvalid

leases = st.builds(Lease, st.sampled_from(["a", "b", "worker-3.lan"]), st.integers(0, 3))


@pytest.mark.parametrize(
    ("known", "presented", "refused"),
    [
        (Lease("a", 2), Lease("a", 2), False),
        (Lease("a", 2), Lease("b", 3), False),
        (Lease("a", 2), Lease("a", 3), False),
        (Lease("a", 2), Lease("b", 1), True),
        (Lease("a", 2), Lease("a", 1), True),
        (Lease("a", 2), Lease("b", 2), True),
    ],
)
def test_refusal(known: Lease, presented: Lease, refused: bool) -> None:
    assert known.refuses(presented) is refused


@given(leases, leases)
def test_one_of_two_claims_is_always_refused(one: Lease, other: Lease) -> None:
    assert one == other or one.refuses(other) or other.refuses(one)
    assert not (one.supersedes(other) and other.supersedes(one))
    assert not (one.supersedes(other) and other.refuses(one))


@given(st.lists(leases, min_size=1, max_size=8))
def test_once_superseded_never_accepted_again(presented: list[Lease]) -> None:
    known = presented[0]
    generations = [known.generation]
    for lease in presented[1:]:
        if not known.refuses(lease):
            known = lease
            generations.append(known.generation)

    assert generations == sorted(generations)


@given(leases)
def test_every_lease_comes_back_from_its_text(lease: Lease) -> None:
    assert Lease.parse(str(lease)) == lease


def test_the_text_names_holder_and_generation() -> None:
    assert str(Lease("worker-3.lan", 7)) == "worker-3.lan@7"


@pytest.mark.parametrize("text", ["", "a", "a@", "@1", "a@-1", "a@b@1", "a:1"])
def test_a_text_that_is_no_lease_is_refused(text: str) -> None:
    with pytest.raises(LeaseInvalid) as raised:
        Lease.parse(text)

    assert raised.value == LeaseInvalid(lease=text)


def test_a_holder_without_a_name_is_a_bug() -> None:
    with pytest.raises(AssertionError, match="cannot hold"):
        Lease("", 1)
