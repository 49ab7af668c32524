"""The examples of these commands are what they say."""

from __future__ import annotations

from holdfast.cli.arguments.workbench import PUBLISH
from tests.cli.examples import misunderstood, understood


def test_every_example_is_understood() -> None:
    assert misunderstood(PUBLISH) == {}
    assert len(understood(PUBLISH)) >= len(PUBLISH)
