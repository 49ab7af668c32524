"""Processes on a server whose handles survive lost connections.

What it offers is loaded when it is first asked for: the keeper lives in this room too, and must
stay small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

if TYPE_CHECKING:
    from holdfast.exec.client import Client
    from holdfast.exec.core.recovery import Policy
    from holdfast.exec.files import Files
    from holdfast.exec.mcp import mcp_streams
    from holdfast.exec.operator import Operator, end_orphans, find_orphans, operating
    from holdfast.exec.process import Process
    from holdfast.exec.transport import ProcessTransport
    from holdfast.exec.web import Web, WebStream

__all__ = [
    "Client",
    "Files",
    "Operator",
    "Policy",
    "Process",
    "ProcessTransport",
    "Web",
    "WebStream",
    "end_orphans",
    "find_orphans",
    "mcp_streams",
    "operating",
]

__getattr__ = face(
    __name__,
    {
        "Client": "client",
        "Files": "files",
        "Operator": "operator",
        "Policy": "core.recovery",
        "Process": "process",
        "ProcessTransport": "transport",
        "Web": "web",
        "WebStream": "web",
        "end_orphans": "operator",
        "find_orphans": "operator",
        "mcp_streams": "mcp",
        "operating": "operator",
    },
)
