"""Take known values out of text, and nothing else; no other rules are read for it."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.telemetry.core.known import forms, known_pass
from holdfast.telemetry.core.passing import Passes


class KnownRedactor(Passes):
    """Replaces known values, however they are encoded; leaves all else as it is."""

    def __init__(self, known: Iterable[str]) -> None:
        values = tuple(known)
        self._written = tuple(form.encode("utf-8", "surrogatepass") for form in forms(values))
        found = known_pass(values)
        super().__init__(*(() if found is None else (found,)))

    def data(self, data: bytes) -> bytes:
        """The bytes without the values; they are the very same where there are none."""
        if not any(written in data for written in self._written):
            return data
        return super().data(data)
