"""Canaries are made up, repeatable and whole."""

from __future__ import annotations

from holdfast.telemetry.testing import canaries


def test_a_seed_gives_the_same_canaries() -> None:
    assert list(canaries(7)) == list(canaries(7))
    assert list(canaries(7)) != list(canaries(8))


def test_every_canary_holds_its_secret() -> None:
    assert [family for family, text, secret in canaries(1) if secret not in text] == []
    assert min(len(secret) for _, _, secret in canaries(1)) >= 16
