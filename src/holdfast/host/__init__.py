"""A conversation that nothing can interrupt: one process holds its runner and its journal.

What it offers is loaded when it is first asked for: who dials a host needs little of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.host.client import Call, Kept, News, Shown, calling
    from holdfast.host.draft import DraftedWorkshop
    from holdfast.host.journal import compose_book, read_book
    from holdfast.host.protocol import Role, Standing, Trouble
    from holdfast.host.server import HostOrder, run_host
    from holdfast.host.session import Phase, Session, fold
    from holdfast.host.supervision import (
        Awaited,
        Ended,
        Reach,
        Reconnected,
        Reconnecting,
        Responsive,
        Seat,
        Seen,
        Unresponsive,
        end_host,
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

__getattr__ = lazy_exports(
    __name__,
    {
        "Call": "client",
        "DraftedWorkshop": "draft",
        "Ended": "supervision",
        "HostOrder": "server",
        "Kept": "client",
        "News": "client",
        "Phase": "session",
        "Reach": "supervision",
        "Reconnected": "supervision",
        "Reconnecting": "supervision",
        "Responsive": "supervision",
        "Role": "protocol",
        "Seat": "supervision",
        "Seen": "supervision",
        "Session": "session",
        "Shown": "client",
        "Standing": "protocol",
        "Trouble": "protocol",
        "Awaited": "supervision",
        "Unresponsive": "supervision",
        "calling": "client",
        "compose_book": "journal",
        "end_host": "supervision",
        "fold": "session",
        "read_book": "journal",
        "run_host": "server",
        "seated": "supervision",
    },
)
