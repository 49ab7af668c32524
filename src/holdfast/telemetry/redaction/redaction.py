"""Take secrets out of text, whole or as it comes.

Four passes, each on what the one before left: known values, private keys in armour, keys that
show what they are, and secrets given away by what stands around them.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.telemetry.redaction.known_values import known_pass
from holdfast.telemetry.redaction.rules import scan_contexts
from holdfast.telemetry.redaction.scan import Passes
from holdfast.telemetry.redaction.tokens import scan_pem, scan_tokens


class Redactor(Passes):
    """Replaces every secret by the name of its family; leaves all else as it is."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        first = known_pass(known)
        super().__init__(*(() if first is None else (first,)), scan_pem, scan_tokens, scan_contexts)
