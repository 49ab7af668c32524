"""The form that every record on the Codex wire has."""

from __future__ import annotations

import msgspec


class WireMessage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """A record read from the wire or to be written to it.

    Members that this version does not know are ignored; what has its default value is not
    written. Records are trees that never change, so the garbage collector need not visit them.
    """
