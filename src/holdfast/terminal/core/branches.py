"""The prompts of a conversation that one can go back to, by what our own agent keeps of it."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from holdfast.agent.model import AnyMemo, Compacted, Entered, Moved, Origin, UserMessage

_decode: Final = msgspec.json.Decoder(AnyMemo).decode


class Earlier(NamedTuple):
    """A prompt, what the conversation was before it, and whether that is still on its way."""

    text: str
    before: str  # the name of an entry; empty is the beginning
    is_here: bool = True


class Branches:
    """Grows by what an agent keeps; of what it cannot read, it knows nothing."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}
        self._prompts: dict[str, str] = {}  # by their entries
        self._head = ""

    def take(self, memo: bytes | msgspec.Raw) -> None:
        """Learn what was kept."""
        try:
            known = _decode(memo)
        except (msgspec.DecodeError, RecursionError):
            return
        match known:
            case Entered(id, after, UserMessage(text, Origin.PERSON)):
                self._prompts[id] = text
                self._grow(id, after)
            case Entered(id, after) | Compacted(id, after):
                self._grow(id, after)
            case Moved(head):
                self._head = head
            case _:
                pass

    def prompts(self) -> list[Earlier]:
        """All prompts, the oldest first, those of other branches among them."""
        here = self._way()
        return [
            Earlier(text, self._parents[id], is_here=id in here)
            for id, text in self._prompts.items()
        ]

    def _grow(self, id: str, after: str) -> None:
        self._parents[id] = after
        self._head = id

    def _way(self) -> set[str]:
        found: set[str] = set()
        at = self._head
        while at and at not in found:
            found.add(at)
            at = self._parents.get(at, "")
        return found


def prompt_lines(prompts: list[Earlier], *, width: int, most: int = 20) -> list[str]:
    """The newest prompts with their numbers, a line each."""
    lines: list[str] = []
    for number, each in list(enumerate(prompts, 1))[-most:]:
        text = " ".join(each.text.split())
        line = f"{number:>3} {'' if each.is_here else '(another branch) '}{text}"
        lines.append(line if len(line) <= width else f"{line[: width - 1]}…")
    return lines
