"""Write what was said so that any provider accepts it, whoever said it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TypeGuard

import msgspec

from holdfast.agent.core.unicode import well_formed

_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_NAME_LONGEST = 64
_encode = msgspec.json.Encoder().encode

NOTHING = "(nothing)"  # providers refuse messages without any words


Omitted = frozenset[str]
"""Options that a provider has refused, dotted where they are inside another."""


def options_bytes(options: Mapping[str, object], without: Omitted = frozenset()) -> bytes:
    """Options of a request as a JSON object, without those that the provider has refused."""
    kept = {name: value for name, value in options.items() if name not in without}
    for path in without:
        name, _, inner = path.partition(".")
        value = kept.get(name)
        if inner and _is_mapping(value):
            kept[name] = {key: each for key, each in value.items() if key != inner}
            if not kept[name]:
                del kept[name]
    return _encode(kept)


def quoted(text: str) -> bytes:
    """A text as JSON; what UTF-8 has no room for is replaced."""
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(well_formed(text))


def words(text: str) -> bytes:
    """A text as JSON that has something in it, even if nobody said anything."""
    return quoted(text if text and not text.isspace() else NOTHING)


def call_id(name: str) -> str:
    """The name of a call in the letters and the length that every provider takes."""
    if _ID.fullmatch(name):
        return name
    return "call_" + hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def tool_name(name: str) -> str:
    """The name of a tool as providers take it, also if a model has made it up."""
    return _NOT_IN_NAMES.sub("_", name)[:_NAME_LONGEST] or "unnamed"


def arguments(text: str) -> bytes:
    """The arguments of a call as a JSON object; what is none is put into one."""
    if is_object(text):
        return text.encode()
    return b'{"malformed_arguments":' + quoted(text) + b"}"


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def is_object(text: str) -> bool:
    """Whether a text is one whole JSON object."""
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
