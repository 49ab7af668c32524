"""What can go wrong at the command line itself."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


class UsageWrong(
    Failure,
    code="CLI_USAGE_WRONG",
    kind=Kind.INVALID,
    title="Wrong usage",
    user_message="{problem} (see: {read_on})",
    phase="arguments",
):
    """The arguments name nothing that we can do."""

    problem: str
    read_on: str


class OutputLost(
    Failure,
    code="CLI_OUTPUT_LOST",
    kind=Kind.NOT_DURABLE,
    title="The answer could not be written",
    user_message="Standard output took no more ({reason}), so what you see is not all of it.",
    phase="output",
    actions=(Action.FREE_DISK_SPACE, Action.RETRY),
):
    """Standard output is closed or full."""

    reason: str
