"""Size limits and Unicode normalization of tool results.

Bytes of files and names that are not UTF-8 are held as surrogate escapes, so that they can be
written back unchanged. JSON cannot carry them: neither the journal, nor a provider, nor a client
accepts a record with one. `well_formed` is the only conversion; `writable` applies it to records.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard, TypeVar

import msgspec

CHARS_MAX: Final = 24_000  # characters of a result that is sent to the model unabridged
# For tools with paging of their own: a page is below CHARS_MAX, so that it is never abridged.
PAGE_MAX: Final = 20_000
HEAD: Final = 8_000
TAIL: Final = 8_000
KEPT_MAX: Final = 1_000_000  # characters of a result in the journal
RECALL: Final = "recall"  # name of the tool that returns the omitted part


def receipt(call: str, text: str) -> str:
    """Return the text, or the two ends of a long text with a note how to read the rest."""
    if len(text) <= CHARS_MAX:
        return text
    left_out = len(text) - HEAD - TAIL
    note = (
        f"\n[… {left_out} characters left out here. To read them, use {RECALL} with "
        f'call "{call}" and offset {HEAD} …]\n'
    )
    return f"{text[:HEAD]}{note}{text[-TAIL:]}"


def kept(text: str) -> str:
    """Return what the journal stores of a text: both ends if it exceeds KEPT_MAX."""
    if len(text) <= KEPT_MAX:
        return text
    half = KEPT_MAX // 2
    lost = len(text) - 2 * half
    return f"{text[:half]}\n[… {lost} characters were not kept …]\n{text[-half:]}"


REPLACEMENT: Final = "\ufffd"

_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_encode: Final = msgspec.json.Encoder().encode
_Record = TypeVar("_Record", bound=msgspec.Struct)


def well_formed(text: str) -> str:
    """Replace every surrogate by U+FFFD."""
    return text if text.isascii() else _SURROGATES.sub(REPLACEMENT, text)


def is_well_formed(text: str) -> bool:
    """Whether the text can be encoded as UTF-8."""
    return text.isascii() or _SURROGATES.search(text) is None


def writable(record: _Record) -> _Record:
    """Return the record itself if it is valid JSON, else a copy with well-formed texts."""
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
