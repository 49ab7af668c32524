"""Make text valid Unicode before it leaves a tool.

Bytes of files and names that are not UTF-8 are held as surrogate escapes, so that they can be
written back unchanged. JSON cannot carry them: neither the journal, nor a provider, nor a client
takes a record with one. `well_formed` is the only conversion; `writable` applies it to records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard, TypeVar

import msgspec

REPLACEMENT: Final = "\ufffd"

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_encode: Final = msgspec.json.Encoder().encode
_Record = TypeVar("_Record", bound=msgspec.Struct)


def well_formed(text: str) -> str:
    """The same text with U+FFFD in place of every surrogate."""
    return text if text.isascii() else _SURROGATES.sub(REPLACEMENT, text)


def is_well_formed(text: str) -> bool:
    """Whether a text can be encoded as UTF-8."""
    return text.isascii() or _SURROGATES.search(text) is None


def writable(record: _Record) -> _Record:
    """The same record if it can be written as JSON, else one with all its texts well-formed."""
    try:
        _encode(record)
    except UnicodeEncodeError:
        return msgspec.convert(_cleaned(msgspec.to_builtins(record)), type(record))
    return record


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return well_formed(value)
    if _is_mapping(value):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in value] if _is_list(value) else value


def _is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    return isinstance(value, Mapping)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)
