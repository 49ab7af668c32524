"""What can go wrong when telemetry is set up."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind


class TelemetryExtraMissing(
    Failure,
    code="TELEMETRY_EXTRA_MISSING",
    kind=Kind.MISCONFIGURED,
    title="Not installed",
    user_message="Sending to {service} needs the optional part {extra}. "
    "Install holdfast[{extra}], or remove {service} from the settings.",
    actions=(Action.OPEN_SETTINGS,),
):
    """A sink was asked for whose library is not installed."""

    service: str
    extra: str


class SinkSlow(
    Failure,
    code="TELEMETRY_SINK_SLOW",
    kind=Kind.BUSY,
    title="Telemetry is slow",
    user_message="The {sink} took {seconds:.1f} seconds for one record, so it is left out for now. "
    "Look at what it writes to.",
    actions=(Action.OPEN_SETTINGS, Action.WAIT),
):
    """A sink kept its caller waiting longer than a record may take."""

    sink: str
    seconds: float
