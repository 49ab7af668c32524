"""For tests of the formats: read the events of one answer."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.agent.model import AnswerCompleted, AnyAnswerDelta, ModelChoice
from holdfast.agent.providers.formats import reading
from holdfast.agent.providers.registry import Format, Provider
from holdfast.agent.providers.stream import EventReader

CHOICE = ModelChoice("there", "some-model")


def read(form: Format, events: Iterable[bytes]) -> list[AnyAnswerDelta]:
    """All pieces of these events, and of their end."""
    reader, answer = EventReader(), reading(Provider("there", form, ""), CHOICE, "fresh")
    pieces = [
        piece for each in events for event in reader.feed(each) for piece in answer.take(event)
    ]
    is_whole = bool(pieces) and isinstance(pieces[-1], AnswerCompleted)
    return pieces if is_whole else pieces + answer.end()


def last(form: Format, events: Iterable[bytes]) -> AnswerCompleted:
    """The answer of these events."""
    found = read(form, events)[-1]
    assert isinstance(found, AnswerCompleted)
    return found
