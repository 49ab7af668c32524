"""How a transaction ended is written down once, and nothing of it is forgotten."""

from __future__ import annotations

import pytest

from holdfast.workbench.model import PathChange
from holdfast.workbench.operations.recovery import (
    OperationKind,
    TransactionIntent,
    facts_of,
    number_in,
    paths_in,
    settle,
    transact,
)
from holdfast.workbench.transaction.machine import TransactionOutcome, TransactionResult
from tests.workbench.benches import Bench, at


def test_what_was_done_is_known_by_its_key(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        node = handle.store.node(handle.look(), at("a"))
        assert node is not None
        change = PathChange(at("a"), node.entry(), None)
        intent = TransactionIntent(deed=OperationKind.RESTORE, key="once", facts={"more": 1})
        with handle.project_site() as site:
            settled = transact(handle, site, (change,), intent)
        settle(handle, settled.outcome)

        facts = facts_of(handle, OperationKind.RESTORE, "once")
        assert facts == settled.facts
        assert settled.outcome.result is TransactionResult.FINISHED
        assert (
            facts_of(handle, OperationKind.PUBLISH, "once")
            is facts_of(handle, OperationKind.RESTORE, None)
            is None
        )
        assert paths_in(settled.facts, "paths") == (at("a"),)
        assert (number_in(settled.facts, "count"), number_in(settled.facts, "more")) == (1, 1)
        assert [each.kind for each in handle.records.events()] == ["restored"]


@pytest.mark.promise("W1")
def test_what_was_undone_is_not_known_as_done(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        node = handle.store.node(handle.look(), at("a"))
        assert node is not None
        change = PathChange(at("a"), node.entry(), None)
        (layered.project / "a").write_bytes(b"saved meanwhile\n")
        with handle.project_site() as site:
            settled = transact(
                handle, site, (change,), TransactionIntent(deed=OperationKind.RESTORE, key="once")
            )

        assert (settled.outcome.result, settled.outcome.conflicts) == (
            TransactionResult.UNDONE,
            (at("a"),),
        )
        assert facts_of(handle, OperationKind.RESTORE, "once") is None
    assert (layered.project / "a").read_bytes() == b"saved meanwhile\n"


@pytest.mark.promise("W4")
def test_a_draft_is_counted_anew_and_revised_once_whoever_ends_it(layered: Bench) -> None:
    found = layered.draft()
    with layered.workbench.locked() as (handle, _):
        base = handle.look()
        facts = {"deed": OperationKind.PUBLISH, "draft": found, "base": base.id, "revised": base.id}
        for key in ("killed before it was noted", "by whoever came next"):
            settle(
                handle,
                TransactionOutcome(TransactionResult.FINISHED, "tx", facts={**facts, "key": key}),
            )
        draft = handle.drafts.find(found)

        assert draft.base == base.id
        assert [(each.number, each.checkpoint, each.base) for each in draft.revisions] == [
            (1, base.id, base.id)
        ]
        assert draft.revisions[0].cause == "published"


def test_what_nobody_needs_to_know_is_not_in_the_facts(layered: Bench) -> None:
    with layered.workbench.locked() as (handle, _):
        node = handle.store.node(handle.look(), at("a"))
        assert node is not None
        change = PathChange(at("a"), node.entry(), None)
        with handle.project_site() as site:
            settled = transact(
                handle, site, (change,), TransactionIntent(deed=OperationKind.RESTORE, key="once")
            )

    assert not {"draft", "base", "revised"} & settled.facts.keys()
