"""Report failures without secrets: to the reader and to the state directory."""

from __future__ import annotations

from functools import cache

from holdfast.app.failures import SettingInvalid
from holdfast.app.settings import Settings, load
from holdfast.app.wiring.telemetry import open_telemetry
from holdfast.failures import Failure, to_wire
from holdfast.telemetry import Redactor, ValueRedactor


def reported(failure: Failure) -> dict[str, object]:
    """A failure as JSON, redacted."""
    return ValueRedactor(_redactor().text).mapping(to_wire(failure))


def readable(page: str) -> str:
    """A page about a failure, redacted."""
    return _redactor().text(page)


def keep(failure: Failure, settings: Settings | None) -> None:
    """Store a failure in the state directory; does nothing if the settings name none."""
    try:
        telemetry = open_telemetry(settings or load(), _redactor())
    except SettingInvalid:
        return  # the settings themselves are what is wrong: they name no place
    telemetry.record(failure)
    telemetry.close()


@cache
def _redactor() -> Redactor:
    """A redactor that knows secret values; rules only if our configuration is unreadable."""
    from holdfast.app.wiring.keys import known_secrets

    try:
        return Redactor(known_secrets(load()))
    except Failure:
        return Redactor()
