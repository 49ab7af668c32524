"""Find keys that show by their form what they are, wherever they stand.

A key lies within one word of `WORD` characters, so words are judged one by one. Most words are
ruled out without looking: the text is folded so that every run of key characters becomes a run
of one letter, and only runs long enough for a key are found.
"""

from __future__ import annotations

import re
import string

from holdfast.telemetry.core.families import AT_START, INSIDE, LABEL, LATER, REST, RUN_SHORTEST
from holdfast.telemetry.core.scan import UNSURE, Rest, Scan, Spans

WORD_LONGEST = 8192  # a longer word is decided in parts
DECIDED = 4096  # characters after its start within which a key is known to be one or not

_KEY_CHARACTERS = string.ascii_letters + string.digits + "_-"
_FOLD = bytes(0x61 if chr(code) in _KEY_CHARACTERS else 0x20 for code in range(256))
_GATE = b"a" * RUN_SHORTEST
_RUN = re.compile(r"[A-Za-z0-9_\-]+")
_WORD_CHARACTERS = _KEY_CHARACTERS + ".+/=\\%:~;["


def scan_tokens(text: str, start: int, final: bool) -> Scan:
    """Hide every key of a known family in all words that are complete."""
    whole = len(text) if final else max(start, len(text.rstrip(_WORD_CHARACTERS)))
    forced = len(text) - whole > WORD_LONGEST
    until = len(text) if forced else whole
    decided = len(text) - DECIDED if forced else until
    folded = text.encode("latin-1", "replace").translate(_FOLD)
    spans = Spans(text, start)
    at = folded.find(_GATE, start, until)
    while at >= 0:
        run = _RUN.match(text, at)
        assert run is not None, "the gate found a run here"
        found = _key_within(text, at, run.end())
        if found is None:
            at = folded.find(_GATE, run.end(), until)
            continue
        begins, ends, family = found
        if begins >= decided:
            break
        spans.replace(begins, ends, LABEL[family])
        if forced and ends >= len(text) - UNSURE:
            return spans.until(ends, Rest(REST[family]))
        at = folded.find(_GATE, ends, until)
    return spans.until(decided)


def _key_within(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    """The first key that begins in a run: where it begins, where it ends and its family."""
    head = AT_START.match(text, start)
    if head is None and ("-" in text[start:end] or "_" in text[start:end]):
        head = INSIDE.search(text, start, end)
    while head is not None:
        family = head.lastgroup
        assert family is not None, "every head is a named group"
        later = LATER[family].match(text, head.end())
        if later is not None:
            return head.start(family), later.end(), family
        head = INSIDE.search(text, head.start(family), end)
    return None
