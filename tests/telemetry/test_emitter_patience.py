"""A sink that fails is left out for a while, and forgiven when it works."""

from __future__ import annotations

from holdfast.telemetry.emitter import FAILURES_MAX, REST, SinkBackoff


def test_a_sink_is_left_out_after_some_failures_and_tried_after_a_rest() -> None:
    patience = SinkBackoff()
    for _ in range(FAILURES_MAX):
        assert patience.allows(10.0)
        patience = patience.failed(10.0)

    assert patience.is_spent
    assert not patience.allows(10.0 + REST - 0.1)
    assert patience.allows(10.0 + REST)
    assert patience.failed(10.0 + REST).allows(10.0 + REST) is False
    assert patience.succeeded() == SinkBackoff()
