"""Find keys that show by their form what they are, wherever they stand.

A key lies within one word of `WORD` characters, so words are judged one by one. Most words are
ruled out without looking: the text is folded so that every run of key characters becomes a run
of one letter, and only runs long enough for a key are found.

The key families that show by their form what they are.

A row says how a key begins: `head` matches within one run of letters, digits, `_` and `-`.
`needs` is what must follow that run and `rest` how the key goes on from there. Prefixes that end
in another character stand in a lookbehind and stay readable.

Find private keys in PEM armour, over as many lines as they take.

A block is hidden as far as its lines look like key material, so one that was cut off does not
hide what follows it. Lines may be indented, quoted, written with `\\n` as in JSON, or shortened
in the middle.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass

from holdfast.telemetry.redaction.scan import (
    CLOSING_LONGEST,
    UNSURE,
    RedactionScan,
    SecretContinuation,
    Spans,
)

PLAIN = r"[A-Za-z0-9_\-]*"
DOTTED = r"(?:[A-Za-z0-9_\-]+|\.(?=[A-Za-z0-9_\-]))*"
BASE64 = r"[A-Za-z0-9_\-+/=]*"
TILDED = r"[A-Za-z0-9_\-.~]*"

RUN_SHORTEST = 18  # no key below has a shorter run, and most words do


@dataclass(frozen=True, slots=True)
class TokenFamily:
    """How one family of keys looks."""

    label: str
    head: str
    needs: str = ""
    rest: str = PLAIN


FAMILIES = (
    TokenFamily("anthropic", r"sk-ant-[\w\-]{16,}"),
    TokenFamily("openai", r"sk-(?:[A-Za-z0-9]{2,12}-){0,3}[A-Za-z0-9_]{20,}"),
    TokenFamily("openai", r"sk-(?:proj|svcacct|admin|None)-[\w\-]{20,}"),
    TokenFamily("openai", r"sess-[A-Za-z0-9]{24,}"),
    TokenFamily("github", r"gh[pour]_[A-Za-z0-9]{20,}"),
    TokenFamily("github", r"ghs_[A-Za-z0-9_\-]{20,}", rest=DOTTED),
    TokenFamily("github", r"github_pat_[A-Za-z0-9_]{20,}"),
    TokenFamily(
        "gitlab", r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-[\w\-]{16,}", rest=DOTTED
    ),
    TokenFamily("aws", r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}"),
    TokenFamily("gcp", r"AIza[\w\-]{35}"),
    TokenFamily("google-oauth", r"(?<=ya29\.)[\w\-]{18,}", rest=DOTTED),
    TokenFamily("google-oauth", r"GOCSPX-[\w\-]{20,}"),
    TokenFamily("google-oauth", r"(?<=1//)0[\w\-]{24,}"),
    TokenFamily("azure", r"(?<=8Q~)[\w\-]{18,}", rest=TILDED),
    TokenFamily("slack", r"xox[a-z]-[\w\-]{16,}"),
    TokenFamily("slack", r"xapp-\d-[\w\-]{16,}"),
    TokenFamily("stripe", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    TokenFamily("stripe", r"whsec_[A-Za-z0-9]{16,}", rest=BASE64),
    TokenFamily("jwt", r"eyJ[\w\-]{15,2000}(?![\w\-])", r"\.[A-Za-z0-9_\-]{8,}", DOTTED),
    TokenFamily("npm", r"npm_[A-Za-z0-9]{30,}"),
    TokenFamily("pypi", r"pypi-Ag[\w\-]{30,}"),
    TokenFamily("huggingface", r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    TokenFamily("twilio", r"SK[0-9a-f]{32}"),
    TokenFamily("sendgrid", r"(?<=SG\.)[\w\-]{18,80}(?![\w\-])", r"\.[A-Za-z0-9_\-]{16,}"),
    TokenFamily("digitalocean", r"do[opr]_v1_[a-f0-9]{40,}"),
    TokenFamily("databricks", r"dapi[a-f0-9]{32}"),
    TokenFamily("discord", r"[MNO][TDjz][\w\-]{20,28}(?![\w\-])", r"\.[\w\-]{6}\.[\w\-]{25,}"),
    TokenFamily("telegram", r"(?<=\d{8}:)AA[\w\-]{30,}"),
    TokenFamily("age", r"AGE-SECRET-KEY-[0-9A-Z\-]{20,}"),
    TokenFamily("xai", r"xai-[A-Za-z0-9]{30,}"),
    TokenFamily("groq", r"gsk_[A-Za-z0-9]{30,}"),
    TokenFamily("perplexity", r"pplx-[A-Za-z0-9]{30,}"),
    TokenFamily("replicate", r"r8_[A-Za-z0-9]{30,}"),
    TokenFamily("nvidia", r"nvapi-[\w\-]{30,}"),
    TokenFamily("vault", r"(?<=hv[sbr]\.)[\w\-]{20,}"),
    TokenFamily("docker", r"dckr_(?:pat|oat)_[\w\-]{20,}"),
    TokenFamily("shopify", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    TokenFamily("linear", r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}"),
    TokenFamily("notion", r"(?:secret|ntn)_[A-Za-z0-9]{40,}"),
    TokenFamily("tailscale", r"tskey-[a-z]+-[\w\-]{16,}"),
    TokenFamily("sentry", r"sntry[su]_[\w\-]{30,}", rest=BASE64),
    TokenFamily("supabase", r"(?:sbp_[a-f0-9]{40}|sb_secret_[\w\-]{20,})"),
    TokenFamily("atlassian", r"ATATT3[\w\-]{30,}", rest=BASE64),
    TokenFamily("grafana", r"gl(?:c|sa)_[A-Za-z0-9]{20,}", rest=BASE64),
    TokenFamily("newrelic", r"NRAK-[A-Z0-9]{20,}"),
    TokenFamily("postman", r"PMAK-[a-f0-9\-]{30,}"),
    TokenFamily("mailgun", r"key-[0-9a-f]{32}"),
)

_GROUP = {f"f{index}": family for index, family in enumerate(FAMILIES)}
_HEADS = "|".join(f"(?P<{group}>{family.head})" for group, family in _GROUP.items())
# What an encoder may have put right before a key: \n in JSON, %3D in a URL, a colour code.
_ENCODED = (
    r"(?:(?<=\\)(?:[abfnrtv]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})"
    r"|(?<=%)[0-9A-Fa-f]{2}|(?<=[\[;])\d{1,3}m)"
)
AT_START = re.compile(rf"(?<![A-Za-z0-9_\-]){_ENCODED}?(?:{_HEADS})", re.ASCII)
INSIDE = re.compile(rf"[_\-](?:{_HEADS})", re.ASCII)
LABEL = {group: family.label for group, family in _GROUP.items()}
REST = {group: re.compile(family.rest, re.ASCII) for group, family in _GROUP.items()}
LATER = {
    group: re.compile((family.needs or PLAIN) + family.rest, re.ASCII)
    for group, family in _GROUP.items()
}


WORD_LONGEST = 8192  # a longer word is decided in parts
DECIDED = 4096  # characters after its start within which a key is known to be one or not

_KEY_CHARACTERS = string.ascii_letters + string.digits + "_-"
_FOLD = bytes(0x61 if chr(code) in _KEY_CHARACTERS else 0x20 for code in range(256))
_GATE = b"a" * RUN_SHORTEST
_RUN = re.compile(r"[A-Za-z0-9_\-]+")
_WORD_CHARACTERS = _KEY_CHARACTERS + ".+/=\\%:~;["


def scan_tokens(text: str, start: int, final: bool) -> RedactionScan:
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
            return spans.until(ends, SecretContinuation(REST[family]))
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


PEM_LABEL = "private-key"
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
_REST = SecretContinuation(re.compile(rf"[A-Za-z0-9+/=]*{_LINES}*"), _CLOSING)
_BEGUN = re.compile(r"-{1,5}\Z|-----[A-Z0-9 ]{1,60}-{0,5}\Z")


def scan_pem(text: str, start: int, final: bool) -> RedactionScan:
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
            spans.replace(at, block.end(), PEM_LABEL)
            return spans.until(block.end(), _REST)
        if block is not None:
            closing = _CLOSING.match(text, block.end())
            spans.replace(at, closing.end() if closing else block.end(), PEM_LABEL)
        at = text.find(_MARK, max(at + 1, spans.at))
    begun = None if final else _BEGUN.search(text, max(spans.at, len(text) - CLOSING_LONGEST))
    return spans.until(begun.start() if begun else len(text))
