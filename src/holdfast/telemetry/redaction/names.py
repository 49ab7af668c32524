"""Judge whether what is assigned to a name is a secret, or ordinary code and prose."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from holdfast.telemetry.redaction.scan import PLACEHOLDER

VALUE_JUDGED = 256  # characters of a value that a judgement may rest on


class Weight(Enum):
    """How much the name alone says about its value."""

    NONE = 0  # not a name of secrets
    FAINT = 1  # some key or tokens: only what looks random is a secret
    FIRM = 2  # a key or a token: unless it is plainly a word
    HARD = 3  # a password or a secret: whatever it is


class Form(Enum):
    """How a value was written."""

    QUOTED = "quoted"
    SHELL = "shell"  # NAME=value, in capitals and without blanks
    BARE = "bare"


_HARD = re.compile(r"(?:password|passwd|passphrase|passcode|pwd|passwort|secret|credential)s?\Z")
_FIRM = re.compile(
    r"(?:token|(?:api|access|secret|private|auth|signing|encryption|master|account|shared|service"
    r"|admin|app|client|license|session|ssh|webhook|deploy|storage|root|crypto|hmac|jwt|role)keys?"
    r"|authorization|npmauth|\Aauth)\Z"
)
_FAINT = re.compile(r"(?:key|keys|tokens)\Z")
_HARMLESS = re.compile(
    r"(?:public|primary|foreign|cache|sort|partition|routing|idempotency|object|hot|row|index"
    r"|lookup|map|dict|group|state|storage|translation|i18n|registry)keys?\Z"
    r"|(?:next|page|nextpage|continuation|continue|sync|cancel(?:lation)?|eos|bos|pad|unk|mask|stop"
    r"|special|max|min|num|total|prompt|completion|input|output|cached?|reasoning)_?tokens?\Z"
)
_SUFFIX = re.compile(
    r"[_\-.]?(?:value|hash|b64|base64|plain|plaintext|old|new|current|prod|production|dev|test|staging"
    r"|live|main|default|primary|backup|\d{1,3})\Z",
    re.IGNORECASE,
)
_CAPITALS = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_NOT_SECRET_TAIL = re.compile(
    r"_(?:FILE|PATH|DIR|URL|URI|NAME|ID|TYPE|COUNT|LENGTH|LIMIT|SIZE|TTL|EXPIRY|EXPIRES|ENABLED"
    r"|REQUIRED|POLICY|FORMAT|PREFIX|HEADER|FIELD|VAR|ENV|BYTES|BITS|AGE|MAX|MIN)\Z"
)
_WORD_IN_CAPITALS = re.compile(
    r"(?:PASSWORD|PASSWD|SECRET|TOKEN|API_?KEY|CREDENTIAL|_KEY)S?(?:_|\Z)"
)

_WHEREABOUTS = {"pwd", "oldpwd"}
_NOTHING = re.compile(
    r"(?:null|none|nil|true|false|undefined|yes|no|on|off|redacted|string|str|bytes|int|integer"
    r"|number|bool|boolean|any|object|required|optional|unset|missing|empty|hidden|default"
    r"|[*x.\-_#•]+|[<{%].*|\$[\w{(].*|\.\.\..*)\Z",
    re.IGNORECASE | re.DOTALL,
)
_IDENTIFIER = re.compile(r"&?[A-Za-z_]+(?:[.:]{1,2}[A-Za-z_]+)*[.;!?]?\Z", re.ASCII)
_CALLABLE = re.compile(r"[A-Za-z_][\w.]{0,60}\Z", re.ASCII)
_SECRET_WORD = re.compile(r"pass|pwd|secret|token|key|cred|auth", re.IGNORECASE)
_NUMBER = re.compile(r"[+\-]?[\d_.,]+\Z", re.ASCII)
_RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_\-+/=.~]{16,}\Z", re.ASCII)
_HEX_OR_UUID = re.compile(r"[0-9a-f]{7,64}\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.I)
_PATH_OR_URL = re.compile(r"(?:[~.]{0,2}/|[a-z][a-z0-9+.\-]*://|[A-Za-z]:\\)")


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value as it stands: what it is called, how it is written, what follows it."""

    name: str
    value: str
    form: Form
    then: str = ""


@lru_cache(maxsize=4096)
def weigh(name: str) -> Weight:
    """Say how much a name promises a secret: `db_password`, `apiKey`, `GH_TOKEN_2`."""
    if _CAPITALS.match(name):
        if _NOT_SECRET_TAIL.search(name):
            return Weight.NONE
        cut = _WORD_IN_CAPITALS.search(name)
        name = name[: cut.end()] if cut else name
    flat = _flat(_SUFFIX.sub("", name))
    if _HARMLESS.search(flat):
        return Weight.NONE
    if _HARD.search(flat):
        return Weight.HARD
    if _FIRM.search(flat):
        return Weight.FIRM
    return Weight.FAINT if _FAINT.search(flat) else Weight.NONE


def is_secret(assigned: Assigned) -> bool:
    """Say whether this value must be hidden."""
    value = assigned.value[:VALUE_JUDGED].strip()
    weight = weigh(assigned.name)
    if weight is Weight.NONE or not value or _NOTHING.match(value) or is_hidden(value):
        return False
    if is_whereabouts(assigned):
        return False
    if weight is Weight.FAINT:
        return bool(_RANDOM.match(value)) and not _HEX_OR_UUID.match(value)
    if _IDENTIFIER.match(value) and _flat(assigned.name).endswith(_flat(value)):
        return False  # a name for a name, as in an enumeration
    if assigned.form is Form.BARE and _is_code_or_prose(value, assigned.then):
        return False
    return len(value) >= 3 if weight is Weight.HARD else _is_key_like(value)


def is_whereabouts(assigned: Assigned) -> bool:
    """Whether this is where a shell is, and not the password that others call so."""
    return assigned.value.startswith("/") and _flat(assigned.name) in _WHEREABOUTS


def is_hidden(value: str) -> bool:
    """Whether nothing but placeholders stands there."""
    value = value[:VALUE_JUDGED]
    return not PLACEHOLDER.sub("", value).strip("\\nrt ") and "[redacted:" in value


def _is_key_like(value: str) -> bool:
    """Keys and tokens have no blanks and are neither words, numbers nor places."""
    if len(value) < 6 or " " in value or _NUMBER.match(value) or _PATH_OR_URL.match(value):
        return False
    return len(value) >= 20 or not _IDENTIFIER.match(value)


def _is_code_or_prose(value: str, then: str) -> bool:
    """What no quotes enclose may be an expression, a type or the next word of a sentence."""
    if then[:1] in ("(", "[") and _CALLABLE.match(value):
        return True
    if not _IDENTIFIER.match(value):
        return False
    goes_on = len(then) > 1 and then[0] == " " and (then[1].isalnum() or then[1] in "=|&[")
    return goes_on or "." in value or ":" in value or bool(_SECRET_WORD.search(value))


def _flat(name: str) -> str:
    """A name without what words are joined by, in small letters."""
    return re.sub(r"[_\-. ]", "", name).lower()


# Read what is assigned to a name: in code, settings, JSON, headers, queries and flags.

NAME_BEFORE_LONGEST = 48  # characters of a name that may precede the word in it

_NAME = r"(?P<name>_?[A-Za-z][\w\-.]{0,40}(?: (?:[aA]ccess )?[kK]ey)?)"
_SIGN = r"[ \t]{0,16}(?:=>|:=|:(?![:=])|=(?![=>]))[ \t]{0,16}"
_QUOTE = r"[\"'\]]{0,2}"
_FORMS = {
    "dq": rf"{_QUOTE}{_SIGN}[bruf]?(?P<dq>\")",
    "sq": rf"{_QUOTE}{_SIGN}[bruf]?(?P<sq>')",
    "esc": rf"\\{{0,20}}[\"']?{_SIGN}(?P<esc>\\{{1,20}}[\"'])",
    "shell": r"=(?P<shell>(?=[^\s\"'`=>\\]))",
    "bare": rf"{_QUOTE}{_SIGN}(?P<bare>(?=[^\s\"'`,;&<>(){{}}\[\]|\\]|\[redacted:))",
    "xml": r"(?P<xml>>)",
    "flag": r"(?P<flag>[ \t]{1,4}[\"']?|[\"'],[ \t]{0,4}[\"'])(?=[^\s:=])",
}
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_-."


def gate(form: str | None = None) -> str:
    """The pattern of a name and what leads to its value; of one form, or of whichever it is."""
    return _NAME + (f"(?:{'|'.join(_FORMS.values())})" if form is None else _FORMS[form])


def name_before(text: str, at: int) -> str:
    """The part of a name that stands before `at`."""
    begin = max(0, at - NAME_BEFORE_LONGEST)
    begin += len(text[begin:at].rstrip(_NAME_CHARACTERS))
    is_escaped = text[max(0, begin - 1) : begin] == "\\"  # the n of \n is not part of the name
    return text[begin + is_escaped : at]


def is_assigned(form: Form) -> Callable[[re.Match[str], str], bool]:
    """Whether what a name is given in this form is a secret."""

    def applies(match: re.Match[str], before: str) -> bool:
        name = before + match["name"]
        if form is Form.SHELL and not match["name"].isupper():
            return False
        value = match["secret"]
        is_whole = len(value) <= VALUE_JUDGED
        then = match.string[match.end() : match.end() + 2] if is_whole else ""
        return is_secret(Assigned(name, value, form, then))

    return applies


def is_flagged(match: re.Match[str], before: str) -> bool:
    """Whether a command-line flag is given a secret: `--password hunter2`."""
    name = before + match["name"]
    then = match.string[match.end() : match.end() + 2]
    value = match["secret"]
    return name.startswith("--") and is_secret(
        Assigned(name.lstrip("-"), value, Form.BARE, then if len(value) <= VALUE_JUDGED else "")
    )


def is_element(match: re.Match[str], before: str) -> bool:
    """Whether an element of XML holds a secret: `<password>hunter2</password>`."""
    at = match.start() - len(before)
    opens = match.string[max(0, at - 1) : at] == "<"
    return opens and is_secret(Assigned(before + match["name"], match["secret"], Form.QUOTED))
