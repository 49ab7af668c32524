"""Find secrets by what stands around them: assignments, headers, schemes and addresses.

Nothing here but a newline ends every secret, so lines are judged one by one. A rule is tried
where one of its words stands; words are found in a copy of the text in small letters.
"""

from __future__ import annotations

import re

from holdfast.telemetry.core.assignments import name_before
from holdfast.telemetry.core.rules import GROUPS, Rule
from holdfast.telemetry.core.scan import UNSURE, Rest, Scan, Spans, inside_placeholder

DECIDED = 2048  # characters after its word within which a rule applies or does not

_SMALL = bytes(code + 32 if 0x41 <= code <= 0x5A else code for code in range(256))
_NAMED_WITHIN = 64  # a name at the end of what was hidden may still speak of what follows
_WORD_LONGEST = max(len(word) for word in GROUPS)


def scan_contexts(text: str, start: int, final: bool) -> Scan:
    """Hide every secret whose surroundings say that it is one."""
    spans = Spans(text, start)
    for at, word in _spots(text, max(0, start - _NAMED_WITHIN)):
        if at < spans.at - _NAMED_WITHIN:
            continue
        rule, match, is_open = _examine(text, at, word)
        is_open = is_open and not final
        if is_open and len(text) - at <= DECIDED:
            return spans.until(at)
        if rule is None or match is None or match.start("secret") < spans.at:
            continue
        spans.replace(match.start("secret"), match.end("secret"), rule.label)
        if is_open:
            return spans.until(spans.at, Rest(rule.rest))
    return spans.until(len(text) if final else max(start, len(text) - _WORD_LONGEST + 1))


def _spots(text: str, start: int) -> list[tuple[int, bytes]]:
    """Where the words of the rules stand, in order."""
    small = text.encode("latin-1", "replace").translate(_SMALL)
    spots: list[tuple[int, bytes]] = []
    for word in [word for word in GROUPS if word in small]:
        at = small.find(word, start)
        while at >= 0:
            spots.append((at, word))
            at = small.find(word, at + len(word))
    spots.sort()
    return spots


def _examine(text: str, at: int, word: bytes) -> tuple[Rule | None, re.Match[str] | None, bool]:
    """The rule that applies at a word, and whether more text could change that."""
    if text[at - 1 : at] in (":", "-") and inside_placeholder(text, at):
        return None, None, False
    is_open = False
    for group in GROUPS[word]:
        if len(text) - at <= group.begun_longest and group.begun.match(text, at):
            is_open = True
        gate = group.gate.match(text, at)
        for rule in group.rules[gate.lastgroup] if gate else ():
            match = rule.pattern.match(text, at)
            if match is None:
                continue
            is_open = is_open or match.end() >= len(text) - UNSURE
            if rule.applies(match, name_before(text, at)):
                return rule, match, is_open
    return None, None, is_open
