"""Decide what needs a person's leave, and ask for it in words that nobody else has written.

Leave is given for exactly what was shown, by a hash of it: whoever changes a letter asks again.
What is too long to be shown whole is too long to be allowed.
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
    """What would leave the sandbox."""

    NETWORK = "network"  # a command that reaches others
    OPEN = "open"  # a command that is not shut in
    PROTECTED = "protected"  # a file that programs obey as soon as they see it
    SERVER = "server"  # an MCP server that the project names
    TOOL = "tool"  # a tool of an MCP server that may change something


class PermissionMode(StrEnum):
    """Whether a person is asked at all."""

    ASK = "ask"
    NEVER = "never"


class PermissionAnswer(StrEnum):
    """What a person can say; the refusal is the last, and what nobody says."""

    ONCE = "Allow once"
    SESSION = "Allow the same for this session"
    ALWAYS = "Allow always, until it changes"
    REFUSE = "Refuse"


class PermissionDecision(StrEnum):
    """What is to be done with a wish."""

    ALLOWED = "allowed"
    ASK = "ask"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class PermissionRequest:
    """What is wanted: `does` is in words of ours; the values of the facts are anybody's.

    `why` is what the model says for it; it is shown, and leave does not depend on it.
    """

    reach: PermissionScope
    does: str
    facts: tuple[tuple[str, str], ...]
    why: str = ""

    @property
    def digest(self) -> str:
        """What a leave is bound to: all that would be done, to the letter."""
        return sha256(repr((self.reach.value, self.does, self.facts)).encode()).hexdigest()

    @property
    def answers(self) -> tuple[PermissionAnswer, ...]:
        """What a person can say to it."""
        if self.reach is PermissionScope.SERVER:
            return (PermissionAnswer.ALWAYS, PermissionAnswer.SESSION, PermissionAnswer.REFUSE)
        return (PermissionAnswer.ONCE, PermissionAnswer.SESSION, PermissionAnswer.REFUSE)


def decide(
    wish: PermissionRequest, asking: PermissionMode, granted: Collection[str]
) -> tuple[PermissionDecision, str]:
    """Whether it is allowed, to be asked for, or refused, and in that case why."""
    if wish.digest in granted:
        return PermissionDecision.ALLOWED, ""
    if asking is PermissionMode.NEVER:
        return PermissionDecision.REFUSED, "this session allows nothing beyond the sandbox"
    if len(detail_of(wish)) > SHOWN_CHARS_MAX:
        return PermissionDecision.REFUSED, "it is too long to be shown to a person; make it shorter"
    return PermissionDecision.ASK, ""


def title_of(wish: PermissionRequest) -> str:
    """The question, in a line."""
    return f"May the agent {wish.does}?"


def detail_of(wish: PermissionRequest) -> str:
    """What exactly is wanted, such that a person sees all that is in it."""
    said = (("the agent says why", wish.why),) if wish.why else ()
    return "\n".join(f"{name}: {visible(value)}" for name, value in (*wish.facts, *said))


def visible(value: str) -> str:
    """Any value, with what would not be seen spelled out; its later lines are indented."""
    lines = value.split("\n")
    return "\n    ".join("".join(map(_seen, line)) for line in lines)


def single_line(value: str, *, chars_max: int = 120) -> str:
    """Any value as a single line that is not too long."""
    line = " ".join(visible(value[: 4 * chars_max]).split())
    return line if len(line) <= chars_max else f"{line[: chars_max - 1]}…"


def _seen(character: str) -> str:
    if character == "\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    return f"<U+{ord(character):04X}>"


# Hand a model what others have written as data, in marks that it cannot close itself.


def labelled(mark: str, about: Mapping[str, str], text: str) -> str:
    """A text between two marks of that name; the first says what it is."""
    inert = text.replace(f"</{mark}", f"<\u200b/{mark}").replace(f"<{mark}", f"<\u200b{mark}")
    facts = "".join(f' {name}="{_quoted(value)}"' for name, value in about.items())
    return f"<{mark}{facts}>\n{inert}\n</{mark}>"


def _quoted(value: str) -> str:
    return single_line(value).replace('"', "'").replace("<", "(").replace(">", ")")
