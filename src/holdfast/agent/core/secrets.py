"""Decide which variables no process of an agent may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_WORDS = frozenset(
    {
        "APIKEY",
        "CREDENTIAL",
        "CREDENTIALS",
        "KEY",
        "KEYS",
        "PASSPHRASE",
        "PASSWD",
        "PASSWORD",
        "SECRET",
        "SECRETS",
        "TOKEN",
        "TOKENS",
    }
)


def without_secrets(environment: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """An environment without these variables and all whose names say that they hold secrets."""
    hidden = frozenset(names)
    return {
        name: value
        for name, value in environment.items()
        if name not in hidden and _WORDS.isdisjoint(name.upper().split("_"))
    }
