"""Read what is assigned to a name: in code, settings, JSON, headers, queries and flags."""

from __future__ import annotations

import re
import string
from collections.abc import Callable

from holdfast.telemetry.core.naming import VALUE_JUDGED, Assigned, Form, is_secret

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
    is_escaped = text[max(0, begin - 1) : begin] == "\\"  # the n of \n is no part of the name
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
