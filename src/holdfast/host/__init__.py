"""The host: one process per session that holds its runner, its journal and a socket.

Names are loaded on first use, because clients of a host need few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.host.client import (
        DeltasReceived,
        HostClient,
        HostNews,
        RecordReceived,
        connect_host,
    )
    from holdfast.host.draft import WorkbenchDraft
    from holdfast.host.journal import compose_journal, read_session_journal
    from holdfast.host.protocol import ClientRole, JournalTrouble, SessionStatus
    from holdfast.host.server import HostConfig, run_host
    from holdfast.host.session import SessionPhase, SessionState, fold
    from holdfast.host.supervision import (
        HostAccess,
        HostSupervisor,
        Reconnected,
        Reconnecting,
        Responsive,
        SupervisionEvent,
        Unresponsive,
        WaitEnded,
        WaitingSeen,
        end_host,
        supervise_host,
    )

__all__ = [
    "ClientRole",
    "DeltasReceived",
    "HostAccess",
    "HostClient",
    "HostConfig",
    "HostNews",
    "HostSupervisor",
    "JournalTrouble",
    "Reconnected",
    "Reconnecting",
    "RecordReceived",
    "Responsive",
    "SessionPhase",
    "SessionState",
    "SessionStatus",
    "SupervisionEvent",
    "Unresponsive",
    "WaitEnded",
    "WaitingSeen",
    "WorkbenchDraft",
    "compose_journal",
    "connect_host",
    "end_host",
    "fold",
    "read_session_journal",
    "run_host",
    "supervise_host",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "HostClient": "client",
        "WorkbenchDraft": "draft",
        "WaitEnded": "supervision",
        "HostConfig": "server",
        "RecordReceived": "client",
        "HostNews": "client",
        "SessionPhase": "session",
        "HostAccess": "supervision",
        "Reconnected": "supervision",
        "Reconnecting": "supervision",
        "Responsive": "supervision",
        "ClientRole": "protocol",
        "HostSupervisor": "supervision",
        "SupervisionEvent": "supervision",
        "SessionState": "session",
        "DeltasReceived": "client",
        "SessionStatus": "protocol",
        "JournalTrouble": "protocol",
        "WaitingSeen": "supervision",
        "Unresponsive": "supervision",
        "connect_host": "client",
        "compose_journal": "journal",
        "end_host": "supervision",
        "fold": "session",
        "read_session_journal": "journal",
        "run_host": "server",
        "supervise_host": "supervision",
    },
)
