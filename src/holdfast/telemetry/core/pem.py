"""Find private keys in PEM armour, over as many lines as they take.

A block is hidden as far as its lines look like key material, so one that was cut off does not
hide what follows it. Lines may be indented, quoted, written with `\\n` as in JSON, or shortened
in the middle.
"""

from __future__ import annotations

import re

from holdfast.telemetry.core.scan import CLOSING_LONGEST, Rest, Scan, Spans

LABEL = "private-key"
HELD_LONGEST = 4096  # a longer block is hidden as it comes

_MARK = "-----BEGIN "
_NAME = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?"
_BETWEEN = r"(?:[\s\"',|>#.…]|\\+[nrt]?){0,40}"
_HEADING = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n\\]{1,80}(?=[\n\\])"
_SHORT = rf"[A-Za-z0-9+/=]{{1,15}}(?={_BETWEEN}[A-Za-z0-9+/=]{{16}})(?![A-Za-z0-9+/=])"
_LINE = rf"(?:[A-Za-z0-9+/=]{{16,}}|{_SHORT}|{_HEADING}|\[redacted:known\])"
_LINES = rf"(?:{_BETWEEN}{_LINE})"
_LAST = rf"(?:{_BETWEEN}[A-Za-z0-9+/=]{{1,15}}(?![A-Za-z0-9+/=]))?"
_CLOSE = rf"{_LAST}(?:{_BETWEEN}-----END {_NAME}-----)?"

_HEADER = re.compile(rf"{_MARK}{_NAME}-----")
_BLOCK = re.compile(rf"{_MARK}{_NAME}-----{_LINES}+")
_CLOSING = re.compile(_CLOSE)
_REST = Rest(re.compile(rf"[A-Za-z0-9+/=]*{_LINES}*"), _CLOSING)
_BEGUN = re.compile(r"-{1,5}\Z|-----[A-Z0-9 ]{1,60}-{0,5}\Z")


def scan_pem(text: str, start: int, final: bool) -> Scan:
    """Hide every private key; hold back a block that is not complete."""
    spans = Spans(text, start)
    at = text.find(_MARK, start)
    while at >= 0:
        header = _HEADER.match(text, at)
        if header is None and (final or not _BEGUN.match(text, at)):
            at = text.find(_MARK, at + 1)
            continue
        block = _BLOCK.match(text, at)
        seen = block or header
        if not final and (seen is None or len(text) - seen.end() < CLOSING_LONGEST):
            if block is None or len(text) - at <= HELD_LONGEST:
                return spans.until(at)
            spans.replace(at, block.end(), LABEL)
            return spans.until(block.end(), _REST)
        if block is not None:
            closing = _CLOSING.match(text, block.end())
            spans.replace(at, closing.end() if closing else block.end(), LABEL)
        at = text.find(_MARK, max(at + 1, spans.at))
    begun = None if final else _BEGUN.search(text, max(spans.at, len(text) - CLOSING_LONGEST))
    return spans.until(begun.start() if begun else len(text))
