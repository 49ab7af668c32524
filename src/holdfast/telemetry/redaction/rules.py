"""The rules by which surroundings give a secret away.

Find secrets by what stands around them: assignments, headers, schemes and addresses.

Nothing here but a newline ends every secret, so lines are judged one by one. A rule is tried
where one of its words stands; words are found in a copy of the text in small letters.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.telemetry.redaction.names import (
    VALUE_JUDGED,
    Form,
    gate,
    is_assigned,
    is_element,
    is_flagged,
    is_hidden,
    name_before,
)
from holdfast.telemetry.redaction.scan import (
    UNSURE,
    RedactionScan,
    SecretContinuation,
    Spans,
    inside_placeholder,
)

Applies = Callable[[re.Match[str], str], bool]  # given the match, and the name up to its word


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """What to look for at a word; the group `secret` of the pattern is what is hidden."""

    label: str
    pattern: re.Pattern[str]
    rest: re.Pattern[str]  # how a secret goes on
    applies: Applies


@dataclass(frozen=True, slots=True)
class RuleGroup:
    """The rules of some words.

    `gate` matches where a rule may apply; the name of its last group says which. `begun` matches
    up to the end of the text as long as more text could let the gate match; it takes no more than
    `begun_longest` characters.
    """

    gate: re.Pattern[str]
    rules: dict[str | None, tuple[RedactionRule, ...]]
    begun: re.Pattern[str]
    begun_longest: int = 200


def _rule(label: str, head: str, secret: str, applies: Applies) -> RedactionRule:
    pattern = re.compile(rf"{head}(?P<secret>(?:{secret})+)", re.ASCII | re.IGNORECASE)
    return RedactionRule(label, pattern, re.compile(rf"(?:{secret})*", re.ASCII), applies)


def _group(rule: RedactionRule, opening: str, begun: str, *, begun_longest: int = 200) -> RuleGroup:
    flags = re.ASCII | re.IGNORECASE
    gate_of_one = re.compile(opening, flags)
    return RuleGroup(
        gate_of_one, {None: (rule,)}, re.compile(rf"(?:{begun})\Z", flags), begun_longest
    )


def _is_shown(match: re.Match[str], before: str) -> bool:
    del before
    return not is_hidden(match["secret"])


def _is_bearer(match: re.Match[str], before: str) -> bool:
    del before
    value = match["secret"][:64]
    is_mixed = any(c.isdigit() for c in value) and any(c.isalpha() for c in value)
    return len(value) >= 20 or (len(value) >= 8 and is_mixed)


def _is_basic(match: re.Match[str], before: str) -> bool:
    """Whether the value says `user:password` in base64."""
    del before
    value = match["secret"][:64]
    try:
        return b":" in base64.b64decode(value[: len(value) // 4 * 4])
    except binascii.Error:
        return False


def _is_cookie(match: re.Match[str], before: str) -> bool:
    del before
    pair = re.match(r"[\w.\-]{1,80}=(?=[^=\s])", match["secret"][:VALUE_JUDGED], re.ASCII)
    return pair is not None and not is_hidden(match["secret"][pair.end() :])


def _is_signature(match: re.Match[str], before: str) -> bool:
    del before
    return len(match["secret"]) >= 20


_TO_END = r"[^\n\r\"'\\]"
_HEADER = r"(?:[\"'\\\]]{0,4}[ \t]{0,4}[:=]|[\"'\\]{1,4}[ \t]{0,4},)[ \t]{0,4}[b\\\"']{0,4}"
_SCHEME = r"(?:Bearer|Basic|Token|Negotiate|ApiKey|Bot|DPoP)[ \t]{1,4}"
_WITH_PARTS = r"(?:Digest|AWS4-HMAC-SHA256)[ \t]{1,4}"
_HEADER_BEGUN = (
    r"[a-z]{1,20}[\"'\\\]]{0,4}[ \t]{0,4}[:=,]?[ \t]{0,4}[b\\\"']{0,4}[\w\-]{0,20}[ \t]{0,4}"
)
_AUTHORITY = r"[^\s/\"'<>\\]"

_quoted, _shell, _bare = (is_assigned(form) for form in (Form.QUOTED, Form.SHELL, Form.BARE))
_DOUBLE = _rule("secret", gate("dq"), r"[^\"\\\n]|\\[^\n]", _quoted)
_SINGLE = _rule("secret", gate("sq"), r"[^'\\\n]|\\[^\n]", _quoted)
_ESCAPED = _rule("secret", gate("esc"), r"[^\"'\\\n]|\\+(?=[^\"'\\])", _quoted)
_SHELL = _rule("secret", gate("shell"), r"[^\s\"'`]", _shell)
_BARE = _rule("secret", gate("bare"), r"[^\s\"'`,;&<>(){}\[\]|\\]", _bare)
_ELEMENT = _rule("secret", gate("xml"), r"[^<>\n]", is_element)
_FLAG = _rule("secret", gate("flag"), r"[^\s\"'`]", is_flagged)
_ASSIGNMENT = RuleGroup(
    gate=re.compile(gate(), re.ASCII),
    rules={
        "dq": (_DOUBLE,),
        "sq": (_SINGLE,),
        "esc": (_ESCAPED,),
        "shell": (_SHELL, _BARE),
        "bare": (_BARE,),
        "xml": (_ELEMENT,),
        "flag": (_FLAG,),
    },
    begun=re.compile(
        r"_?[A-Za-z][\w\-.]{0,40}(?: [AaKk][A-Za-z]{0,5}(?: [A-Za-z]{0,3})?| )?"
        r"[\"'\\\]]{0,24},?[ \t]{0,16}[:=>]{0,2}[ \t]{0,16}[bruf]?\\{0,20}\Z",
        re.ASCII,
    ),
)
_AUTHORIZATION = _group(
    _rule("authorization", rf"authorization{_HEADER}{_SCHEME}", r"[^\s\"'\\]", _is_shown),
    rf"authorization{_HEADER}{_SCHEME}\S",
    _HEADER_BEGUN,
)
_SIGNED = _group(
    _rule("authorization", rf"authorization{_HEADER}{_WITH_PARTS}", r"[^\n\r]", _is_shown),
    rf"authorization{_HEADER}{_WITH_PARTS}.",
    _HEADER_BEGUN,
)
_COOKIE = _group(
    _rule("cookie", rf"cookies?{_HEADER}", _TO_END, _is_cookie),
    rf"cookies?{_HEADER}[\w.\-]{{1,80}}=",
    rf"{_HEADER_BEGUN}[\w.\-]{{0,80}}",
)
_BEARER = _group(
    _rule("bearer", r"bearer(?:[ \t]{1,4}|%20)(?=\w)", r"[\w\-.~+/=]", _is_bearer),
    r"bearer(?:[ \t]{1,4}|%20)\w",
    r"bearer[ \t]{0,4}(?:%2?0?)?",
)
_BASIC = _group(
    _rule("basic-auth", r"basic[ \t]{1,4}", r"[A-Za-z0-9+/=]", _is_basic),
    r"basic[ \t]{1,4}.",
    r"basic[ \t]{0,4}",
)
_USER = r"[^\s/:@?#\"'<>\\\[=]{0,128}(?:\[redacted:[a-z\-]+\][^\s/:@?#\"'<>\\\[=]{0,128})?"
_ADDRESS = _group(
    _rule(
        "url-password",
        rf"://{_USER}:(?={_AUTHORITY}{{1,512}}@)",
        rf"[^\s/\"'<>\\@]|@(?={_AUTHORITY}{{0,512}}@)",
        _is_shown,
    ),
    rf"://{_USER}:{_AUTHORITY}{{1,512}}@",
    rf"://{_AUTHORITY}{{0,800}}",
    begun_longest=810,
)
_SIGNATURE = _group(
    _rule("azure", r"sig=", r"[A-Za-z0-9%+/=_\-]", _is_signature), r"sig=.", r"sig="
)
_SLACK = _group(
    _rule("slack", r"hooks\.slack\.com/[a-z]{1,20}/", r"[\w/\-]", _is_shown),
    r"hooks\.slack\.com/[a-z]{1,20}/\w",
    r"hooks[.a-z]{0,12}/?[a-z]{0,20}/?",
)
_DISCORD = _group(
    _rule("discord", r"hooks/\d{6,25}/", r"[\w\-]", _is_shown),
    r"hooks/\d{6,25}/[\w\-]",
    r"hooks/?\d{0,25}/?",
)

GROUPS: dict[bytes, tuple[RuleGroup, ...]] = {
    b"pass": (_ASSIGNMENT,),
    b"pwd": (_ASSIGNMENT,),
    b"secret": (_ASSIGNMENT,),
    b"credential": (_ASSIGNMENT,),
    b"token": (_ASSIGNMENT,),
    b"key": (_ASSIGNMENT,),
    b"_auth": (_ASSIGNMENT,),
    b"authorization": (_AUTHORIZATION, _SIGNED, _ASSIGNMENT),
    b"cookie": (_COOKIE,),
    b"bearer": (_BEARER,),
    b"basic": (_BASIC,),
    b"://": (_ADDRESS,),
    b"sig=": (_SIGNATURE,),
    b"hooks": (_SLACK, _DISCORD),
}


DECIDED = 2048  # characters after its word within which a rule applies or does not

_SMALL = bytes(code + 32 if 0x41 <= code <= 0x5A else code for code in range(256))
_NAMED_WITHIN = 64  # a name at the end of what was hidden may still speak of what follows
_WORD_LONGEST = max(len(word) for word in GROUPS)


def scan_contexts(text: str, start: int, final: bool) -> RedactionScan:
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
            return spans.until(spans.at, SecretContinuation(rule.rest))
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


def _examine(
    text: str, at: int, word: bytes
) -> tuple[RedactionRule | None, re.Match[str] | None, bool]:
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
