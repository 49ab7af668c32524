"""Permission rules: what needs a permission, and how the request is displayed.

A permission covers exactly what was displayed, by its SHA-256: any changed byte asks again. A
request that is too long to be displayed completely is refused.

Untrusted text never forms the wording of a question. It appears as the value of a labelled fact,
with control and invisible characters spelled out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final

SHOWN_CHARS_MAX: Final = 4000
_HIDDEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


class PermissionScope(StrEnum):
    """What a request would do beyond the sandbox."""

    NETWORK = "network"  # a command with network access
    OPEN = "open"  # a command without sandbox
    PROTECTED = "protected"  # a file that programs execute or load on sight, such as git hooks
    SERVER = "server"  # an MCP server from the project's configuration
    TOOL = "tool"  # a tool of an MCP server that is not marked as read-only


class PermissionMode(StrEnum):
    """Whether to ask the person at all."""

    ASK = "ask"
    NEVER = "never"


class PermissionAnswer(StrEnum):
    """Answers to a permission request; the last, the refusal, is also the default."""

    ONCE = "Allow once"
    SESSION = "Allow the same for this session"
    ALWAYS = "Allow always, until it changes"
    REFUSE = "Refuse"


class PermissionDecision(StrEnum):
    """What to do with a request."""

    ALLOWED = "allowed"
    ASK = "ask"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """A permission request: `does` is fixed wording of ours, values of `facts` are untrusted.

    `why` is the model's justification; it is displayed, and not part of the digest.
    """

    reach: PermissionScope
    does: str
    facts: tuple[tuple[str, str], ...]
    why: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of everything that the permission covers."""
        return sha256(repr((self.reach.value, self.does, self.facts)).encode()).hexdigest()

    @property
    def answers(self) -> tuple[PermissionAnswer, ...]:
        """The answers that the person can choose from."""
        if self.reach is PermissionScope.SERVER:
            return (PermissionAnswer.ALWAYS, PermissionAnswer.SESSION, PermissionAnswer.REFUSE)
        return (PermissionAnswer.ONCE, PermissionAnswer.SESSION, PermissionAnswer.REFUSE)


def decide(
    wish: PermissionRequest, asking: PermissionMode, granted: Collection[str]
) -> tuple[PermissionDecision, str]:
    """Return the decision, with a reason if the request is refused."""
    if wish.digest in granted:
        return PermissionDecision.ALLOWED, ""
    if asking is PermissionMode.NEVER:
        return PermissionDecision.REFUSED, "this session allows nothing beyond the sandbox"
    if len(detail_of(wish)) > SHOWN_CHARS_MAX:
        return PermissionDecision.REFUSED, "it is too long to be shown to a person; make it shorter"
    return PermissionDecision.ASK, ""


def title_of(wish: PermissionRequest) -> str:
    """Return the question in one line."""
    return f"May the agent {wish.does}?"


def detail_of(wish: PermissionRequest) -> str:
    """Return the facts of a request with every character visible."""
    said = (("the agent says why", wish.why),) if wish.why else ()
    return "\n".join(f"{name}: {visible(value)}" for name, value in (*wish.facts, *said))


def visible(value: str) -> str:
    """Spell out invisible and control characters; indent continuation lines."""
    lines = value.split("\n")
    return "\n    ".join("".join(map(_seen, line)) for line in lines)


def single_line(value: str, *, chars_max: int = 120) -> str:
    """Return a value as one line of at most `chars_max` characters."""
    line = " ".join(visible(value[: 4 * chars_max]).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def _seen(character: str) -> str:
    if character == "\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"<U+{ord(character):04X}>"


# Markup for untrusted text in prompts.


def labelled(mark: str, about: Mapping[str, str], text: str) -> str:
    """Wrap untrusted text in a tag that the text itself cannot close."""
    inert = text.replace(f"</{mark}", f"<\u200b/{mark}").replace(f"<{mark}", f"<\u200b{mark}")
    facts = "".join(f' {name}="{_quoted(value)}"' for name, value in about.items())
    return f"<{mark}{facts}>\n{inert}\n</{mark}>"


def _quoted(value: str) -> str:
    return single_line(value).replace('"', "'").replace("<", "(").replace(">", ")")
