"""A conversation that nothing can interrupt: one process holds its runner and its journal.

What it offers is loaded when it is first asked for: who dials a host needs little of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.host.book import read_book
    from holdfast.host.composing import compose_book
    from holdfast.host.core.session import Phase, Session, fold
    from holdfast.host.dialling import Call, Kept, News, Shown, calling
    from holdfast.host.drafting import DraftedWorkshop
    from holdfast.host.ending import end_host
    from holdfast.host.hosting import HostOrder, run_host
    from holdfast.host.protocol import Role, Standing, Trouble
    from holdfast.host.sitting import (
        Awaited,
        Ended,
        Reach,
        Reconnected,
        Reconnecting,
        Responsive,
        Seat,
        Seen,
        Unresponsive,
        seated,
    )

__all__ = [
    "Awaited",
    "Call",
    "DraftedWorkshop",
    "Ended",
    "HostOrder",
    "Kept",
    "News",
    "Phase",
    "Reach",
    "Reconnected",
    "Reconnecting",
    "Responsive",
    "Role",
    "Seat",
    "Seen",
    "Session",
    "Shown",
    "Standing",
    "Trouble",
    "Unresponsive",
    "calling",
    "compose_book",
    "end_host",
    "fold",
    "read_book",
    "run_host",
    "seated",
]

__getattr__ = face(
    __name__,
    {
        "Call": "dialling",
        "DraftedWorkshop": "drafting",
        "Ended": "sitting",
        "HostOrder": "hosting",
        "Kept": "dialling",
        "News": "dialling",
        "Phase": "core.session",
        "Reach": "sitting",
        "Reconnected": "sitting",
        "Reconnecting": "sitting",
        "Responsive": "sitting",
        "Role": "protocol",
        "Seat": "sitting",
        "Seen": "sitting",
        "Session": "core.session",
        "Shown": "dialling",
        "Standing": "protocol",
        "Trouble": "protocol",
        "Awaited": "sitting",
        "Unresponsive": "sitting",
        "calling": "dialling",
        "compose_book": "composing",
        "end_host": "ending",
        "fold": "core.session",
        "read_book": "book",
        "run_host": "hosting",
        "seated": "sitting",
    },
)
