"""Lay out a failure for a person: what happened, what it means, what to do, its code."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.cli.render.style import Look, Tone
from holdfast.failures import Action, Failure, Recovery, title_of
from holdfast.nouns import printable

_RECOVERIES = {
    Recovery.FIX_INPUT: "Change the input, then try again.",
    Recovery.WAIT: "Wait a while, then try again.",
    Recovery.RETRY_IMMEDIATE: "Try again.",
    Recovery.RETRY_BACKOFF: "Try again in a moment.",
    Recovery.USE_ALTERNATIVE: "Try another way.",
    Recovery.ESCALATE: "Someone has to look at this before it is tried again.",
    Recovery.NONE: "Nothing needs to be done.",
}
_ACTIONS = {
    Action.RETRY: "Try again.",
    Action.RESUME: "Resume where it stopped.",
    Action.REGENERATE: "Ask for a new answer.",
    Action.SWITCH_MODEL: "Choose another model.",
    Action.SWITCH_RUNNER: "Choose another runner.",
    Action.OPEN_SETTINGS: "Change the setting, then try again.",
    Action.GIVE_CONSENT: "Give your consent, then try again.",
    Action.OVERRIDE_POLICY: "Ask the administrator of the policy for an exception.",
    Action.RESTORE_CHECKPOINT: "Restore a checkpoint.",
    Action.FREE_DISK_SPACE: "Free some disk space, then try again.",
    Action.REVIEW_DRAFT: "Review the draft.",
    Action.MERGE_INTO_DRAFT: "Bring the newer state into the draft: holdfast draft merge",
    Action.PUBLISH_PARTIAL: "Publish the part that can be published.",
    Action.FORCE: "Do it anyway, if you are sure.",
    Action.SEND_TO_AGENT: 'Let the agent correct it: holdfast ask --draft ID "..."',
    Action.DISCARD_DRAFT: "Discard the draft.",
    Action.VIEW_REPORT: "See the details: add --verbose.",
    Action.RESTART_BACKEND: "Restart the service, then try again.",
    Action.WAIT: "Wait a while, then try again.",
    Action.CANCEL: "Cancel it.",
}
_ALWAYS = {Action.CANCEL, Action.VIEW_REPORT}  # actions that need no hint
_OTHERS_MAX = 3
assert _RECOVERIES.keys() == set(Recovery)
assert _ACTIONS.keys() == set(Action)


def error_page(failure: Failure, look: Look, *, is_verbose: bool) -> str:
    """What went wrong, what to do next, and the code to look it up by."""
    sign = look.paint(look.signs.bad, Tone.BAD)
    lines = [
        f"{sign} {look.paint(printable(title_of(failure)), Tone.STRONG)}",
        *look.wrap(printable(failure.user_message), indent=2),
        *look.wrap(f"{look.signs.leads_to} {next_step(failure)}", indent=2),
        *(look.paint(f"    or: {each}", Tone.QUIET) for each in other_steps(failure)),
        look.paint(f"  {failure.code}", Tone.QUIET),
    ]
    if is_verbose:
        lines += [f"  {line}" for line in _details(failure)]
    return "\n".join(lines) + "\n"


def next_step(failure: Failure) -> str:
    """What to do first, in words: its likeliest action, else its way back."""
    return _ACTIONS[failure.actions[0]] if failure.actions else _RECOVERIES[failure.recovery]


def other_steps(failure: Failure) -> list[str]:
    """What else can be done, in words, the likeliest first; not all of much."""
    words = [_ACTIONS[each] for each in failure.actions if each not in _ALWAYS]
    return [each for each in dict.fromkeys(words) if each != next_step(failure)][:_OTHERS_MAX]


def _details(failure: Failure) -> list[str]:
    known: dict[str, object] = {"phase": failure.phase}
    if failure.timestamp is not None:
        known["time"] = datetime.fromtimestamp(failure.timestamp, UTC).isoformat()
    known |= {**failure.ids.known(), **failure.details}
    return [f"{name}: {printable(str(value))}" for name, value in known.items()]
