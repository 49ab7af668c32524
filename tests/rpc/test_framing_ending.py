"""How a connection ended is told from the evidence, row by row."""

from __future__ import annotations

import pytest

from holdfast.failures import Failure
from holdfast.rpc.failures import ConnectionClosed, ConnectionLost
from holdfast.rpc.framing import Evidence, Remains, how, of_child, of_socket

REMAINS = Remains(stderr="oh no\n", partial='{"id":')
LEFT = {"stderr": "oh no\n", "partial": '{"id":'}


@pytest.mark.promise("F16", "F17")
@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence(at_end=True), None),
        (Evidence(error="Broken pipe"), None),
        (Evidence(status=0), None),
        (Evidence(status=-9, error="Broken pipe"), None),
        (Evidence(at_end=True, status=0), ConnectionClosed(reason="exit status 0", **LEFT)),
        (Evidence(waited=True, status=0), ConnectionClosed(reason="exit status 0", **LEFT)),
        (
            Evidence(at_end=True, status=3),
            ConnectionLost(reason="exit status 3", status=3, **LEFT),
        ),
        (
            Evidence(waited=True, status=-9),
            ConnectionLost(reason="killed by SIGKILL", status=-9, **LEFT),
        ),
        (
            Evidence(at_end=True, waited=True),
            ConnectionLost(reason="it closed its output and lives on", **LEFT),
        ),
        (
            Evidence(error="Broken pipe", waited=True),
            ConnectionLost(reason="Broken pipe", **LEFT),
        ),
    ],
)
def test_a_child_ends_as_its_status_says(evidence: Evidence, verdict: Failure | None) -> None:
    assert of_child(evidence, REMAINS) == verdict


@pytest.mark.parametrize(
    ("evidence", "partial", "verdict"),
    [
        (Evidence(at_end=True), "", ConnectionClosed(reason="the other side closed it")),
        (
            Evidence(at_end=True),
            "{",
            ConnectionLost(reason="it broke off inside a message", partial="{"),
        ),
        (
            Evidence(at_end=True, error="Connection reset by peer"),
            "",
            ConnectionLost(reason="Connection reset by peer"),
        ),
        (Evidence(error="Broken pipe"), "", None),
        (
            Evidence(error="Broken pipe", waited=True),
            "",
            ConnectionLost(reason="Broken pipe"),
        ),
    ],
)
def test_a_socket_ends_in_good_order_only_between_messages(
    evidence: Evidence, partial: str, verdict: Failure | None
) -> None:
    assert of_socket(evidence, Remains(partial=partial)) == verdict


@pytest.mark.parametrize(
    ("status", "words"),
    [(3, "exit status 3"), (-15, "killed by SIGTERM"), (-64, "killed by SIGRTMAX"), (-99, "99")],
)
def test_a_status_is_put_in_words(status: int, words: str) -> None:
    assert how(status).endswith(words)
