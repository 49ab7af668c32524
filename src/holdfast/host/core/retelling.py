"""Tell an agent that has forgotten a conversation what was said in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from holdfast.host.model import AnyRecord, Happened, Prompted, Steered
from holdfast.runners.model import Said

RETOLD_CHARS_MAX: Final = 200_000  # of what was said; the newest of it
_HEAD: Final = (
    "You have taken part in this conversation before, and no longer know it. This is what was "
    "said{cut}; what you did is in the files. Go on from here.\n\n"
)
_CUT: Final = ", but for its beginning"
_NOW: Final = "Person, now: "


def retold(records: Iterable[AnyRecord], prompted: Prompted) -> str:
    """A prompt with all that was said before it; the prompt alone if nothing was."""
    said = [words for record in records if (words := _words(record, prompted))]
    if not said:
        return prompted.text
    kept, room = list[str](), RETOLD_CHARS_MAX
    for words in reversed(said):
        room -= len(words)
        if room < 0:
            break
        kept.append(words)
    head = _HEAD.format(cut=_CUT if len(kept) < len(said) else "")
    return head + "".join(reversed(kept)) + _NOW + prompted.text


def _words(record: AnyRecord, prompted: Prompted) -> str:
    match record:
        case Prompted(turn=turn, text=text) if turn < prompted.turn:
            return f"Person: {text}\n\n"
        case Steered(text=text):
            return f"Person: {text}\n\n"
        case Happened(event=Said(text=text)):
            return f"You: {text}\n\n"
        case _:
            return ""
