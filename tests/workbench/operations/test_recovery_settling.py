"""How a transaction ended is written down once, and nothing of it is forgotten."""

from __future__ import annotations

import pytest

from holdfast.workbench.model import PathChange
from holdfast.workbench.operations.recovery import (
    Deed,
    Intent,
    facts_of,
    number_in,
    paths_in,
    settle,
    transact,
)
from holdfast.workbench.transaction.machine import Outcome, Way
from tests.workbench.benches import Bench, at


def test_what_was_done_is_known_by_its_key(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        node = held.store.node(held.look(), at("a"))
        assert node is not None
        change = PathChange(at("a"), node.entry(), None)
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
        change = PathChange(at("a"), node.entry(), None)
        (layered.project / "a").write_bytes(b"saved meanwhile\n")
        with held.project_site() as site:
            settled = transact(held, site, (change,), Intent(deed=Deed.RESTORE, key="once"))

        assert (settled.outcome.way, settled.outcome.conflicts) == (Way.UNDONE, (at("a"),))
        assert facts_of(held, Deed.RESTORE, "once") is None
    assert (layered.project / "a").read_bytes() == b"saved meanwhile\n"


@pytest.mark.promise("W4")
def test_a_draft_is_counted_anew_and_revised_once_whoever_ends_it(layered: Bench) -> None:
    found = layered.draft()
    with layered.workbench.held() as (held, _):
        base = held.look()
        facts = {"deed": Deed.PUBLISH, "draft": found, "base": base.id, "revised": base.id}
        for key in ("killed before it was noted", "by whoever came next"):
            settle(held, Outcome(Way.FINISHED, "tx", facts={**facts, "key": key}))
        draft = held.drafts.find(found)

        assert draft.base == base.id
        assert [(each.number, each.checkpoint, each.base) for each in draft.revisions] == [
            (1, base.id, base.id)
        ]
        assert draft.revisions[0].cause == "published"


def test_what_nobody_needs_to_know_is_not_in_the_facts(layered: Bench) -> None:
    with layered.workbench.held() as (held, _):
        node = held.store.node(held.look(), at("a"))
        assert node is not None
        change = PathChange(at("a"), node.entry(), None)
        with held.project_site() as site:
            settled = transact(held, site, (change,), Intent(deed=Deed.RESTORE, key="once"))

    assert not {"draft", "base", "revised"} & settled.facts.keys()
