"""JSON-RPC peers, and transports over child processes, stdio, Unix sockets and WebSocket.

Public names are imported on first use: most processes need only a few of the modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

# Imported eagerly: the submodule `heartbeat` would hide the function of the same name later.
from holdfast.rpc.heartbeat import HeartbeatPolicy, HeartbeatResult, heartbeat

if TYPE_CHECKING:
    from holdfast.rpc.backlog import Overflow
    from holdfast.rpc.connection import Connection, ConnectionConfig
    from holdfast.rpc.dispatch import Handler, Service, foreign_error, own_error
    from holdfast.rpc.framing import (
        MESSAGE_BYTES_MAX,
        EndContext,
        EndEvidence,
        LineDecoder,
        TailBuffer,
        child_failure,
        excerpt,
        join,
    )
    from holdfast.rpc.heartbeat import HELLO, hello_handler, send_hello
    from holdfast.rpc.peer import HandshakeGate, Hello, PeerLimits, Welcome
    from holdfast.rpc.ports import NotificationSink, Transport
    from holdfast.rpc.subscription import Subscription
    from holdfast.rpc.transports.child import ChildTransport, spawn
    from holdfast.rpc.transports.launch import ChildCommand
    from holdfast.rpc.transports.stdio import StdioTransport
    from holdfast.rpc.transports.unix import UnixServer, UnixTransport, connect, listen
    from holdfast.rpc.transports.websocket import (
        WebSocketServer,
        WebSocketTransport,
        connect_websocket,
        listen_websocket,
        resume_websocket,
    )
    from holdfast.rpc.transports.websocket_protocol import PingPolicy, token_digest
    from holdfast.rpc.transports.websocket_stream_loop import ServerLimits, WebSocketLimits

__all__ = [
    "HELLO",
    "MESSAGE_BYTES_MAX",
    "ChildCommand",
    "ChildTransport",
    "Connection",
    "ConnectionConfig",
    "EndContext",
    "EndEvidence",
    "Handler",
    "HandshakeGate",
    "HeartbeatPolicy",
    "HeartbeatResult",
    "Hello",
    "LineDecoder",
    "NotificationSink",
    "Overflow",
    "PeerLimits",
    "PingPolicy",
    "ServerLimits",
    "Service",
    "StdioTransport",
    "Subscription",
    "TailBuffer",
    "Transport",
    "UnixServer",
    "UnixTransport",
    "WebSocketLimits",
    "WebSocketServer",
    "WebSocketTransport",
    "Welcome",
    "child_failure",
    "connect",
    "connect_websocket",
    "excerpt",
    "foreign_error",
    "heartbeat",
    "hello_handler",
    "join",
    "listen",
    "listen_websocket",
    "own_error",
    "resume_websocket",
    "send_hello",
    "spawn",
    "token_digest",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "HELLO": "heartbeat",
        "MESSAGE_BYTES_MAX": "framing",
        "ChildTransport": "transports.child",
        "ChildCommand": "transports.launch",
        "Connection": "connection",
        "EndEvidence": "framing",
        "NotificationSink": "ports",
        "HandshakeGate": "peer",
        "Handler": "dispatch",
        "Hello": "peer",
        "PeerLimits": "peer",
        "LineDecoder": "framing",
        "Overflow": "backlog",
        "PingPolicy": "transports.websocket_protocol",
        "EndContext": "framing",
        "ServerLimits": "transports.websocket_stream_loop",
        "Service": "dispatch",
        "StdioTransport": "transports.stdio",
        "Subscription": "subscription",
        "TailBuffer": "framing",
        "ConnectionConfig": "connection",
        "Transport": "ports",
        "UnixServer": "transports.unix",
        "UnixTransport": "transports.unix",
        "WebSocketLimits": "transports.websocket_stream_loop",
        "WebSocketServer": "transports.websocket",
        "WebSocketTransport": "transports.websocket",
        "Welcome": "peer",
        "connect": "transports.unix",
        "connect_websocket": "transports.websocket",
        "excerpt": "framing",
        "foreign_error": "dispatch",
        "send_hello": "heartbeat",
        "join": "framing",
        "listen": "transports.unix",
        "listen_websocket": "transports.websocket",
        "child_failure": "framing",
        "own_error": "dispatch",
        "resume_websocket": "transports.websocket",
        "spawn": "transports.child",
        "token_digest": "transports.websocket_protocol",
        "hello_handler": "heartbeat",
    },
)
