"""The examples of these commands are what they say."""

from __future__ import annotations

from holdfast.cli.sandbox_commands import SANDBOX
from tests.cli.examples import misunderstood, understood


def test_every_example_is_understood() -> None:
    assert misunderstood(SANDBOX) == {}
    assert len(understood(SANDBOX)) >= len(SANDBOX)
