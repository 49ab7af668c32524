"""How a transaction ended is written down once, and nothing of it is forgotten."""

from __future__ import annotations

import pytest

from holdfast.workbench.core.publication import Way
from holdfast.workbench.model import Change
from holdfast.workbench.settling import (
    Deed,
    Intent,
    facts_of,
    number_in,
    paths_in,
    settle,
    transact,
)
from tests.workbench.benches import Bench, at


def test_what_was_done_is_known_by_its_key(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        node = held.store.node(held.look(), at("a"))
        assert node is not None
        change = Change(at("a"), node.entry(), None)
        intent = Intent(deed=Deed.RESTORE, key="once", facts={"more": 1})
        with held.project_site() as site:
            settled = transact(held, site, (change,), intent)
        settle(held, settled.outcome)

        facts = facts_of(held, Deed.RESTORE, "once")
        assert facts == settled.facts
        assert settled.outcome.way is Way.FINISHED
        assert facts_of(held, Deed.PUBLISH, "once") is facts_of(held, Deed.RESTORE, None) is None
        assert paths_in(settled.facts, "paths") == (at("a"),)
        assert (number_in(settled.facts, "count"), number_in(settled.facts, "more")) == (1, 1)
        assert [each.kind for each in held.records.events()] == ["restored"]


@pytest.mark.promise("W1")
def test_what_was_undone_is_not_known_as_done(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        node = held.store.node(held.look(), at("a"))
        assert node is not None
        change = Change(at("a"), node.entry(), None)
        (layered.project / "a").write_bytes(b"saved meanwhile\n")
        with held.project_site() as site:
            settled = transact(held, site, (change,), Intent(deed=Deed.RESTORE, key="once"))

        assert (settled.outcome.way, settled.outcome.conflicts) == (Way.UNDONE, (at("a"),))
        assert facts_of(held, Deed.RESTORE, "once") is None
    assert (layered.project / "a").read_bytes() == b"saved meanwhile\n"
