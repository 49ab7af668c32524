"""Client of the exec-server: processes whose handles survive lost connections.

Public names are imported on first use: the keeper imports this package too, and must stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

if TYPE_CHECKING:
    from holdfast.exec.client.client import Client
    from holdfast.exec.client.files import RemoteFiles
    from holdfast.exec.client.http import RemoteHttp, RemoteHttpStream
    from holdfast.exec.client.mcp import mcp_streams
    from holdfast.exec.client.operator import Operator, end_orphans, find_orphans, operating
    from holdfast.exec.client.process import Process
    from holdfast.exec.client.recovery import RecoveryPolicy
    from holdfast.exec.client.transport import ProcessTransport

__all__ = [
    "Client",
    "Operator",
    "Process",
    "ProcessTransport",
    "RecoveryPolicy",
    "RemoteFiles",
    "RemoteHttp",
    "RemoteHttpStream",
    "end_orphans",
    "find_orphans",
    "mcp_streams",
    "operating",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "Client": "client.client",
        "RemoteFiles": "client.files",
        "Operator": "client.operator",
        "RecoveryPolicy": "client.recovery",
        "Process": "client.process",
        "ProcessTransport": "client.transport",
        "RemoteHttp": "client.http",
        "RemoteHttpStream": "client.http",
        "end_orphans": "client.operator",
        "find_orphans": "client.operator",
        "mcp_streams": "client.mcp",
        "operating": "client.operator",
    },
)
