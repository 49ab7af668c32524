"""The examples of these commands are what they say."""

from __future__ import annotations

from holdfast.cli.arguments.sessions import SESSION
from tests.cli.examples import misunderstood, understood


def test_every_example_is_understood() -> None:
    assert misunderstood(SESSION) == {}
    assert len(understood(SESSION)) >= len(SESSION)
