"""The examples of these commands are what they say."""

from __future__ import annotations

from holdfast.cli.arguments.sessions import TRANSFER
from tests.cli.examples import misunderstood, understood


def test_every_example_is_understood() -> None:
    assert misunderstood(TRANSFER) == {}
    assert len(understood(TRANSFER)) >= len(TRANSFER)
