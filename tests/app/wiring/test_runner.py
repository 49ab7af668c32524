"""A runner is engaged when there is a turn; what keeps it from that is the turn's failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.app.sessions import Sessions
from tests.cli.conversations import hosts_of, in_conversation, lines
from tests.cli.workbenches import Bench


@pytest.fixture
def bench() -> Iterator[Bench]:
    with in_conversation() as made:
        yield made


@pytest.mark.promise("R3")
def test_what_cannot_be_engaged_fails_its_turn_and_not_the_host(bench: Bench) -> None:
    sessions = Sessions(bench.settings)
    session = sessions.make(str(bench.project), "draft_gone", "rehearsal", title="", options={})
    results = [
        lines(bench.ran("ask", "--json", "--session", session.id, "Hello").stdout)[-1]
        for _ in range(2)
    ]

    for turn, result in enumerate(results, start=1):
        assert (result["status"], result["turn"]) == ("failed", turn)
        assert result["error"]["code"] == "NOT_FOUND_DRAFT"
        assert result["report"] is not None
    assert len(hosts_of(bench)) == 1
