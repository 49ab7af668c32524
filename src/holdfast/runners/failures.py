"""Failures of runners."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class RunnerUnknown(
    Failure,
    code="RUNNER_UNKNOWN",
    kind=Kind.MISSING,
    title="No such runner",
    user_message="There is no runner {runner}; there are {known}.",
    actions=(Action.SWITCH_RUNNER,),
):
    """There is no runner of that name."""

    runner: str
    known: str


class RunnerUnavailable(
    Failure,
    code="RUNNER_UNAVAILABLE",
    kind=Kind.UNAVAILABLE,
    title="The runner cannot be used",
    user_message="{runner} cannot be used here: {reason}. {remedy}",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.SWITCH_RUNNER, Action.RETRY),
):
    """The runner is not installed, not signed in, or does not respond."""

    runner: str
    reason: str
    remedy: str = ""


class RunnerEnded(
    Failure,
    code="RUNNER_ENDED",
    kind=Kind.LOST,
    title="The agent ended too early",
    user_message="{runner} ended before its turn was over. {reason} What it had done until then "
    "is in the draft; ask again to go on.",
    actions=(Action.RETRY, Action.REVIEW_DRAFT, Action.SWITCH_RUNNER),
):
    """The process of the runner exited during a turn."""

    runner: str
    reason: str
    stderr: str = ""


class SessionUnknown(
    Failure,
    code="RUNNER_SESSION_UNKNOWN",
    kind=Kind.MISSING,
    title="The agent has forgotten",
    user_message="{runner} no longer has the conversation {session}. What was said is kept here; "
    "begin a new one, and it will not know what came before.",
    actions=(Action.RETRY, Action.SWITCH_RUNNER),
):
    """The runner no longer knows the conversation id."""

    runner: str
    session: str


class OptionUnknown(
    Failure,
    code="RUNNER_OPTION_UNKNOWN",
    kind=Kind.INVALID,
    title="The runner has no such option",
    user_message="{runner} cannot be told the {option} of a turn. What it can be told: {known}.",
    actions=(Action.SWITCH_RUNNER,),
):
    """The runner does not support an option of the turn."""

    option: str
    runner: str
    known: tuple[str, ...]


class ScenarioInvalid(
    Failure,
    code="REHEARSAL_SCENARIO_INVALID",
    kind=Kind.MISCONFIGURED,
    title="The scenario is not valid",
    user_message="{name}: {problem}.",
):
    """The scenario file is not valid."""

    name: str
    problem: str


class OffScript(
    Failure,
    code="REHEARSAL_OFF_SCRIPT",
    kind=Kind.CONFLICT,
    title="The rehearsal left its script",
    user_message="The scenario expected something else: {problem}.",
):
    """The scenario expected another result."""

    problem: str


class Rehearsed(
    Failure,
    code="REHEARSED_FAILURE",
    kind=Kind.UNAVAILABLE,
    title="A failure for practice",
    user_message="The scenario wanted this turn to fail: {reason}.",
):
    """The scenario ends the turn with this failure."""

    reason: str
