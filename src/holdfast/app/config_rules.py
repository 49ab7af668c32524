"""Decide what a person has settled, where several places say something about it.

The first that says something counts: a flag, the environment, the user's file, and else what we
would do. A project's file only narrows what the others say: the smaller of two budgets counts.

Decision: docs/decisions/0141-project-settings-only-narrow.md
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeGuard

from holdfast.app.failures import ConfigKeyRefused, ConfigKeyUnknown, SettingInvalid
from holdfast.runners.model import EFFORTS

Value = str | bool | int | float

RUNNERS: Final = ("rehearsal", "codex", "native")
BUDGET: Final = "budget."
WAIT: Final = "wait."  # for models
LIMITS: Final = (BUDGET, WAIT)  # how keys begin that a session is begun with
WAYS: Final = ("bell", "osc9", "osc777", "command")  # to call a person who looks elsewhere
_COUNT_END: Final = 10**18  # bounds the length of a number that is stored as text and parsed again
_CLAIMS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Key:
    """Something that can be settled: what it may be, how it is read, what it is otherwise."""

    allowed: str
    read: Callable[[object], Value | None]
    otherwise: Value | None = None
    is_own: bool = False  # said in the person's own file, or nowhere: it is run


@dataclass(frozen=True, slots=True)
class Layer:
    """What one place says; `origin` names it to a person."""

    origin: str
    values: Mapping[str, Value]
    narrows: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The value of a setting and its origin; None if it is not set."""

    value: Value | None
    origin: str


def _one_of(*words: str) -> Callable[[object], Value | None]:
    return lambda raw: raw if isinstance(raw, str) and raw in words else None


def _text(raw: object) -> Value | None:
    return raw if isinstance(raw, str) and raw.strip() and raw.isprintable() else None


def _claim(raw: object) -> Value | None:
    return raw if isinstance(raw, bool) else _CLAIMS.get(raw.lower()) if _is_text(raw) else None


def _count(raw: object) -> Value | None:
    if _is_text(raw) and raw.isascii() and raw.isdigit() and len(raw) <= 18:
        raw = int(raw)
    if not isinstance(raw, int) or isinstance(raw, bool):
        return None
    return raw if 0 < raw < _COUNT_END else None


def _amount(raw: object) -> Value | None:
    if isinstance(raw, bool) or not isinstance(raw, (str, int, float)):
        return None
    try:
        number = float(raw)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number > 0 else None


def _ways(raw: object) -> Value | None:
    said = raw.replace(",", " ").split() if _is_text(raw) else []
    if said == ["off"]:
        return "off"
    return ",".join(way for way in WAYS if way in said) if set(said) <= {*WAYS} and said else None


def _command(raw: object) -> Value | None:
    try:
        words = shlex.split(raw) if _is_text(raw) and raw.isprintable() else []
    except ValueError:
        return None
    return raw if _is_text(raw) and words and words[0] else None


def _is_text(raw: object) -> TypeGuard[str]:
    return isinstance(raw, str)


KEYS: Final = {
    "runner": Key(f"one of {', '.join(RUNNERS)}", _one_of(*RUNNERS)),
    "model": Key("a word such as openai/gpt-5.1", _text),
    "effort": Key(f"one of {', '.join(EFFORTS)}", _one_of(*EFFORTS)),
    "color": Key("auto, always or never", _one_of("auto", "always", "never"), "auto"),
    "plain": Key("true or false", _claim, False),
    "notify": Key(f"off, or one or several of {', '.join(WAYS)}", _ways, "bell,osc9"),
    "notify_command": Key("a program and its words", _command, is_own=True),
    "publish_ignored": Key("true or false", _claim, False),
    f"{BUDGET}steps": Key("a whole number above 0", _count),
    f"{BUDGET}tokens": Key("a whole number above 0", _count),
    f"{BUDGET}cost_usd": Key("a number above 0", _amount),
    f"{BUDGET}seconds": Key("a number above 0", _amount),
    f"{WAIT}first_byte": Key("a number of seconds above 0", _amount),
    f"{WAIT}between_chunks": Key("a number of seconds above 0", _amount),
    f"{WAIT}attempts": Key("a whole number above 0", _count),
}
VARIABLES: Final = {
    f"HOLDFAST_{name.replace('.', '_').upper()}": name
    for name, key in KEYS.items()
    if not key.is_own
}


def checked(table: Mapping[str, object], *, file: str, narrows: bool = False) -> dict[str, Value]:
    """What a file says, key by key; raise what is wrong with the first that is wrong."""
    found: dict[str, Value] = {}
    for key, raw in _flat(table):
        if key not in KEYS:
            (nearest,) = get_close_matches(key, KEYS, n=1, cutoff=0.0)
            raise ConfigKeyUnknown(key=key, file=file, nearest=nearest)
        if narrows and not key.startswith(BUDGET):
            raise ConfigKeyRefused(key=key, file=file)
        found[key] = value_of(key, raw, where=f"{key} in {file}")
    return found


def value_of(key: str, raw: object, *, where: str) -> Value:
    """A value as its key wants it; raise what is wrong with it."""
    value = KEYS[key].read(raw)
    if value is None:
        raise SettingInvalid(variable=where, value=str(raw), allowed=KEYS[key].allowed)
    return value


def settle(layers: Sequence[Layer]) -> dict[str, Settled]:
    """What counts of each key, by layers of which the first counts most."""
    return {key: _settled(key, layers) for key in KEYS}


def _settled(key: str, layers: Sequence[Layer]) -> Settled:
    found = Settled(KEYS[key].otherwise, "default")
    for layer in reversed(layers):
        if key in layer.values and not layer.narrows:
            found = Settled(layer.values[key], layer.origin)
    for layer in layers:
        limit = layer.values.get(key) if layer.narrows else None
        if limit is not None and (found.value is None or float(limit) < float(found.value)):
            found = Settled(limit, layer.origin)
    return found


def _flat(table: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Every key with what it belongs to, one level deep: deeper there is none."""
    for key, raw in table.items():
        if _is_table(raw):
            yield from ((f"{key}.{inner}", each) for inner, each in raw.items())
        else:
            yield key, raw


def _is_table(raw: object) -> TypeGuard[dict[str, object]]:
    return isinstance(raw, dict)
