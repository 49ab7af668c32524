"""What was said is told again in order, the newest of it if it is much."""

from __future__ import annotations

import pytest

from holdfast.host.model import AnyRecord, EventRecorded, PromptQueued, SteeringAccepted, TurnBegun
from holdfast.host.turns import RETOLD_CHARS_MAX, retold
from holdfast.runners.model import TextCompleted, ThinkingCompleted

NOW = PromptQueued("c3", 3, "And now?", 3)
LONG = "x" * (RETOLD_CHARS_MAX - 15)


@pytest.mark.parametrize(
    ("records", "told"),
    [
        ([], "And now?"),
        ([TurnBegun(3, 3), NOW, EventRecorded(3, ThinkingCompleted("1", "Hm"))], "And now?"),
        (
            [
                PromptQueued("c1", 1, "One?", 1),
                EventRecorded(1, TextCompleted("1", "One.")),
                SteeringAccepted("c2", 1, "More!"),
                EventRecorded(1, TextCompleted("2", "Two.")),
                NOW,
            ],
            "You have taken part in this conversation before, and no longer know it. This is what "
            "was said; what you did is in the files. Go on from here.\n\n"
            "Person: One?\n\nYou: One.\n\nPerson: More!\n\nYou: Two.\n\nPerson, now: And now?",
        ),
        (
            [
                PromptQueued("c1", 1, "One?", 1),
                EventRecorded(1, TextCompleted("1", LONG)),
                SteeringAccepted("c2", 1, "Two"),
            ],
            "You have taken part in this conversation before, and no longer know it. This is what "
            "was said, but for its beginning; what you did is in the files. Go on from here.\n\n"
            "Person: Two\n\nPerson, now: And now?",
        ),
    ],
)
def test_what_was_said_is_told_again(records: list[AnyRecord], told: str) -> None:
    assert retold(records, NOW) == told
