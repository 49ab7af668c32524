"""The error view of a failure: title, message, offers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Final

from holdfast.failures import Action, Failure, Kind, from_wire, title_of
from holdfast.terminal.model import Offer, Trouble

# Each is a line that could be typed; one that ends with a space wants more words.
_OFFERS: Final = {
    Action.RETRY: Offer("Try again", "/retry"),
    Action.RESUME: Offer("Go on", "/retry"),
    Action.REGENERATE: Offer("Ask for a new answer", "/retry"),
    Action.SWITCH_MODEL: Offer("Switch model", "/model "),
    Action.SWITCH_RUNNER: Offer("Switch runner", "/runner "),
    Action.OPEN_SETTINGS: Offer("See the settings", "/doctor"),
    Action.GIVE_CONSENT: Offer("Give consent", "/consent give {provider}", "/retry"),
    Action.OVERRIDE_POLICY: Offer("Ask for an exception", ""),
    Action.RESTORE_CHECKPOINT: Offer("Restore a checkpoint", "/restore "),
    Action.FREE_DISK_SPACE: Offer("See what takes space", "/storage"),
    Action.REVIEW_DRAFT: Offer("Review the draft", "/diff"),
    Action.MERGE_INTO_DRAFT: Offer("Bring the newer state in", "/merge"),
    Action.PUBLISH_PARTIAL: Offer("Publish a part", "/publish --only "),
    Action.FORCE: Offer("Do it anyway", "/publish --force "),
    Action.SEND_TO_AGENT: Offer("Let the agent correct it", "Correct what went wrong: "),
    Action.DISCARD_DRAFT: Offer("Discard the draft", "/discard"),
    Action.VIEW_REPORT: Offer("See the report", "/report"),
    Action.RESTART_BACKEND: Offer("Restart it", "/restart"),
    Action.WAIT: Offer("Wait", ""),
    Action.CANCEL: Offer("Leave it", ""),
}
_ENTER_KEY: Final = Offer("Enter the key", "/login {provider}", "/retry")
assert _OFFERS.keys() == set(Action)


def trouble_of(wire: dict[str, object], *, at: str = "") -> Trouble:
    """The error block for a failure; `at` is its time."""
    failure = from_wire(wire)
    return Trouble(
        title_of(failure),
        failure.user_message,
        offers_of(failure),
        tuple(_details(failure, at)),
    )


def offers_of(failure: Failure) -> tuple[Offer, ...]:
    """Offers for the actions of a failure, the likeliest first, without duplicates."""
    known = [_filled(_offer(each, failure), failure) for each in reversed(failure.actions)]
    found = {each.line: each for each in known}
    return tuple(each for each in reversed(found.values()) if each.line)


def _offer(action: Action, failure: Failure) -> Offer:
    """The offer for an action; for a missing or refused key it is /login."""
    is_key = failure.kind is Kind.CREDENTIALS and bool(failure.details.get("provider"))
    return _ENTER_KEY if action is Action.OPEN_SETTINGS and is_key else _OFFERS[action]


def _filled(offer: Offer, failure: Failure) -> Offer:
    """An offer with {provider} filled in; its line is empty if the failure names no provider."""
    if "{provider}" not in offer.line:
        return offer
    provider = str(failure.details.get("provider") or "")
    line = offer.line.format(provider=shlex.quote(provider)) if provider else ""
    return offer._replace(line=line)


def _details(failure: Failure, at: str) -> Iterator[str]:
    known = {"code": failure.code, "phase": failure.phase, "time": at}
    for name, value in {**known, **failure.ids.known(), **failure.details}.items():
        if value not in ("", None):
            yield f"{name}: {value}"
