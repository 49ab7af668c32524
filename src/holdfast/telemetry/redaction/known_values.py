"""Find secrets whose value is known, also as encoders write them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from holdfast.telemetry.redaction.scan import (
    CONTEXT,
    PLACEHOLDER,
    PLACEHOLDER_BEGUN,
    Pass,
    Passes,
    RedactionScan,
    Spans,
    inside_placeholder,
)

KNOWN_SHORTEST = 8  # shorter values would hide ordinary words
LABEL = "known"


def forms(values: Iterable[str]) -> tuple[str, ...]:
    """Every way in which these values may be written."""
    found = {form for value in values if len(value) >= KNOWN_SHORTEST for form in _forms(value)}
    usable = (form for form in found if len(form) >= KNOWN_SHORTEST)
    return tuple(sorted(form for form in usable if not PLACEHOLDER.search(form)))


def known_pass(values: Iterable[str]) -> Pass | None:
    """A pass that hides these values; None when there is nothing to hide."""
    written = forms(values)
    if not written:
        return None

    def scan(text: str, start: int, final: bool) -> RedactionScan:
        """Hide every known value; hold back what may be the beginning of one."""
        spans = Spans(text, start)
        undecided = len(text) if final else _undecided(text, start, written)
        for at, end in _found(text, start, written):
            if at < spans.at or inside_placeholder(text, at):
                continue
            if at >= undecided:
                break
            spans.replace(at, end, LABEL)
            if not final:
                undecided = _undecided(text, end, written)
        return spans.until(undecided)

    return scan


def _found(text: str, start: int, written: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where known values stand, first ones first and of those the longest."""
    spots: list[tuple[int, int]] = []
    for form in written:
        at = text.find(form, start)
        while at >= 0:
            spots.append((at, at + len(form)))
            at = text.find(form, at + 1)
    return sorted(spots, key=lambda spot: (spot[0], -spot[1]))


def _undecided(text: str, start: int, written: tuple[str, ...]) -> int:
    """Where the first thing begins that more text may turn into a known value."""
    begun = PLACEHOLDER_BEGUN.search(text, max(start, len(text) - CONTEXT))
    first = begun.start() if begun else len(text)
    for form in written:
        at = max(start, len(text) - len(form) + 1)
        while (at := text.find(form[0], at, first)) >= 0:
            if form.startswith(text[at:]):
                first = at
                break
            at += 1
    return first


def _forms(value: str) -> set[str]:
    raw = value.encode("utf-8", "surrogatepass")
    in_json = json.dumps(value)[1:-1]
    return {
        value,
        raw.decode("latin-1"),  # how a pass over bytes sees it
        in_json,
        json.dumps(value, ensure_ascii=False)[1:-1],
        json.dumps(in_json)[1:-1],
        quote(raw, safe=""),
        quote(raw),
        quote_plus(raw),
        quote(raw, safe="").lower(),
        *_in_base64(raw),
    }


def _in_base64(raw: bytes) -> set[str]:
    """What base64 shows of the value, wherever in the encoded text it begins."""
    shown: set[str] = set()
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            encoded = encode(b"\0" * offset + raw).decode().rstrip("=")
            ragged = (offset + len(raw)) % 3  # then the last character mixes in what follows
            shown.add(encoded[(0, 2, 3)[offset] : len(encoded) - (1 if ragged else 0)])
    return shown


# Take known values out of text, and nothing else; no other rules are read for it.


class KnownRedactor(Passes):
    """Replaces known values, however they are encoded; leaves all else as it is."""

    def __init__(self, known: Iterable[str]) -> None:
        values = tuple(known)
        self._written = tuple(form.encode("utf-8", "surrogatepass") for form in forms(values))
        found = known_pass(values)
        super().__init__(*(() if found is None else (found,)))

    def data(self, data: bytes) -> bytes:
        """The bytes without the values; they are the very same where there are none."""
        if not any(written in data for written in self._written):
            return data
        return super().data(data)
