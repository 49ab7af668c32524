"""How a connection ended is told from the evidence, row by row."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.framing import (
    EndContext,
    EndEvidence,
    child_failure,
    describe_exit,
    socket_failure,
)

REMAINS = EndContext(stderr="oh no\n", partial='{"id":')
LEFT = {"stderr": "oh no\n", "partial": '{"id":'}


@pytest.mark.promise("F16", "F17")
@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (EndEvidence(at_end=True), None),
        (EndEvidence(error="Broken pipe"), None),
        (EndEvidence(status=0), None),
        (EndEvidence(status=-9, error="Broken pipe"), None),
        (EndEvidence(at_end=True, status=0), ConnectionClosed(reason="exit status 0", **LEFT)),
        (EndEvidence(waited=True, status=0), ConnectionClosed(reason="exit status 0", **LEFT)),
        (
            EndEvidence(at_end=True, status=3),
            ConnectionLost(reason="exit status 3", status=3, **LEFT),
        ),
        (
            EndEvidence(waited=True, status=-9),
            ConnectionLost(reason="killed by SIGKILL", status=-9, **LEFT),
        ),
        (
            EndEvidence(at_end=True, waited=True),
            ConnectionLost(reason="it closed its output and lives on", **LEFT),
        ),
        (
            EndEvidence(error="Broken pipe", waited=True),
            ConnectionLost(reason="Broken pipe", **LEFT),
        ),
    ],
)
def test_a_child_ends_as_its_status_says(evidence: EndEvidence, verdict: Failure | None) -> None:
    assert child_failure(evidence, REMAINS) == verdict


@pytest.mark.parametrize(
    ("evidence", "partial", "verdict"),
    [
        (EndEvidence(at_end=True), "", ConnectionClosed(reason="the other side closed it")),
        (
            EndEvidence(at_end=True),
            "{",
            ConnectionLost(reason="it broke off inside a message", partial="{"),
        ),
        (
            EndEvidence(at_end=True, error="Connection reset by peer"),
            "",
            ConnectionLost(reason="Connection reset by peer"),
        ),
        (EndEvidence(error="Broken pipe"), "", None),
        (
            EndEvidence(error="Broken pipe", waited=True),
            "",
            ConnectionLost(reason="Broken pipe"),
        ),
    ],
)
def test_a_socket_ends_in_good_order_only_between_messages(
    evidence: EndEvidence, partial: str, verdict: Failure | None
) -> None:
    assert socket_failure(evidence, EndContext(partial=partial)) == verdict


@pytest.mark.parametrize(
    ("status", "words"),
    [(3, "exit status 3"), (-15, "killed by SIGTERM"), (-64, "killed by SIGRTMAX"), (-99, "99")],
)
def test_a_status_is_put_in_words(status: int, words: str) -> None:
    assert describe_exit(status).endswith(words)
