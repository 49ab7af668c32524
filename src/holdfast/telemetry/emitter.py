"""The one door for all that becomes a log line, an event, a report or a metric."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.failures import Failure, Ids, boundary, to_log, to_wire
from holdfast.telemetry.failures import SinkSlow
from holdfast.telemetry.model import Level, TelemetryEvent, TelemetryRecord
from holdfast.telemetry.ports import Sink
from holdfast.telemetry.redaction.redaction import Redactor
from holdfast.telemetry.redaction.values import ValueRedactor

if TYPE_CHECKING:
    from holdfast.world import Clock


# Decide when a sink that fails is left out, and when it is tried again.

FAILURES_MAX = 3
REST = 60.0


@dataclass(frozen=True, slots=True)
class SinkBackoff:
    """How a sink has behaved: failures in a row, and until when it is left out."""

    failures: int = 0
    until: float = 0.0

    def allows(self, now: float) -> bool:
        """Whether the sink is to be tried now."""
        return self.failures < FAILURES_MAX or now >= self.until

    def succeeded(self) -> SinkBackoff:
        """A record was taken: all is forgiven."""
        return self if self.failures == 0 else SinkBackoff()

    def failed(self, now: float) -> SinkBackoff:
        """A record was not taken, or took too long."""
        return SinkBackoff(failures=self.failures + 1, until=now + REST)

    @property
    def is_spent(self) -> bool:
        """Whether the sink is left out, but for a try after each rest."""
        return self.failures >= FAILURES_MAX


DEBUG_NOTICE = "debug mode is on: lines may hold prompts and file excerpts"
SLOW = 1.0  # seconds that one record may take a sink
_SHORT = 64  # characters of a text whose redaction is remembered: methods, codes, ids
_EXCERPT_MAX = 4096
_NOBODY = Ids()


class Telemetry:
    """Takes secrets out of everything and hands it to the sinks; never fails its caller.

    A sink that fails or is slow several times in a row is left out for a while, and the others
    are told. Sinks are called one after the other, in the caller's thread.
    """

    def __init__(
        self,
        sinks: Sequence[Sink],
        *,
        clock: Clock,
        redactor: Redactor | None = None,
        debug: bool = False,
    ) -> None:
        self._outlets = [_Outlet(sink, clock) for sink in sinks]
        self._level = min((sink.level for sink in sinks), default=None)
        self._clock = clock
        self._redactor = redactor or Redactor()
        self._short = lru_cache(maxsize=1024)(self._redactor.text)
        self._clean = ValueRedactor(self._text)
        self._debug = debug
        self._recorded: dict[int, weakref.ref[Failure]] = {}

    def wants(self, level: Level) -> bool:
        """Whether anyone would see a record of this level; ask before building costly ones."""
        return self._level is not None and level >= self._level

    def emit(self, event: TelemetryEvent) -> None:
        """Tell the sinks what happened."""
        if self._level is not None and event.level >= self._level:
            self._deliver(event.level, event.name, {**event.ids.known(), **event.fields()})

    def note(
        self,
        level: Level,
        message: str,
        *,
        ids: Ids = _NOBODY,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        """Write a line for the log."""
        if self.wants(level):
            self._deliver(level, "note", {**ids.known(), **(fields or {}), "message": message})

    def excerpt(self, what: str, text: str, *, ids: Ids = _NOBODY) -> None:
        """Write part of a prompt or a file, if the person switched debug mode on; else nothing."""
        if self._debug and self.wants(Level.DEBUG):
            shown = {**ids.known(), "message": what, "excerpt": text[:_EXCERPT_MAX]}
            self._deliver(Level.DEBUG, "excerpt", shown)

    def record(self, failure: Failure) -> None:
        """Log, count and keep a failure with its ids, the first time that it is seen."""
        if id(failure) in self._recorded:
            return
        key = id(failure)
        self._recorded[key] = weakref.ref(failure, lambda _: self._recorded.pop(key, None))
        failure.stamped(self._clock.now())
        level = Level.ERROR if failure.kind.http_status >= 500 else Level.WARNING
        self._deliver(level, "failure", to_log(failure), failure=to_wire(failure))

    def report(self, value: object) -> object:
        """A JSON value that may be shown or written to a file: bounded and without secrets."""
        return self._clean(value)

    def close(self) -> None:
        """Close every sink."""
        for outlet in self._outlets:
            outlet.close()

    def _text(self, text: str) -> str:
        return self._short(text) if len(text) <= _SHORT else self._redactor.text(text)

    def _deliver(
        self,
        level: Level,
        name: str,
        fields: Mapping[str, object],
        *,
        failure: Mapping[str, object] | None = None,
    ) -> None:
        if self._debug:
            fields = {**fields, "debug": DEBUG_NOTICE}
        record = TelemetryRecord(
            at=self._clock.now(),
            level=level,
            name=name,
            fields=self._clean.mapping(fields),
            failure=None if failure is None else self._clean.mapping(failure),
        )
        self._hand_out(record)

    def _hand_out(self, record: TelemetryRecord) -> None:
        for outlet in self._outlets:
            failure = outlet.offer(record)
            if failure is not None and outlet.patience.is_spent:
                told = {"sink": outlet.name, **to_log(failure)}
                news = TelemetryRecord(
                    at=record.at,
                    level=Level.WARNING,
                    name="telemetry.sink_left_out",
                    fields=self._clean.mapping(told),
                )
                for other in self._outlets:
                    other.offer(news)


class _Outlet:
    """One sink, and how it has behaved."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self.name = sink.name
        self.patience = SinkBackoff()

    def offer(self, record: TelemetryRecord) -> Failure | None:
        """Hand a record over, unless the sink does not want it; return what went wrong."""
        began = self._clock.monotonic()
        if record.level < self._sink.level or not self.patience.allows(began):
            return None
        failure = self._attempt(lambda: self._sink.take(record))
        ended = self._clock.monotonic()
        if failure is None and ended - began > SLOW:
            failure = SinkSlow(sink=self.name, seconds=ended - began)
        self.patience = self.patience.failed(ended) if failure else self.patience.succeeded()
        return failure

    def close(self) -> None:
        self._attempt(self._sink.close)

    def _attempt(self, act: Callable[[], None]) -> Failure | None:
        try:
            with boundary("telemetry"):
                act()
        except Failure as failure:
            return failure
        return None
