"""JSON-RPC peers over transports that may fail in every way.

What it offers is loaded when it is first asked for: not everyone needs all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import lazy_exports

# At once: a module of the same name would stand in its way later.
from holdfast.rpc.heartbeat import Beat, Rhythm, heartbeat

if TYPE_CHECKING:
    from holdfast.rpc.backlog import Overflow
    from holdfast.rpc.connection import Connection, Terms
    from holdfast.rpc.dispatch import Handler, Service, foreign_error, own_error
    from holdfast.rpc.framing import (
        MESSAGE_BYTES_MAX,
        Evidence,
        Lines,
        Remains,
        Tail,
        excerpt,
        join,
        of_child,
    )
    from holdfast.rpc.heartbeat import HELLO, introduce, welcoming
    from holdfast.rpc.peer import Gate, Hello, Limits, Welcome
    from holdfast.rpc.ports import Follower, Transport
    from holdfast.rpc.subscription import Subscription
    from holdfast.rpc.transports.child import ChildTransport, spawn
    from holdfast.rpc.transports.launch import Command
    from holdfast.rpc.transports.stdio import StdioTransport
    from holdfast.rpc.transports.unix import UnixServer, UnixTransport, connect, listen
    from holdfast.rpc.transports.websocket import (
        WebSocketServer,
        WebSocketTransport,
        connect_websocket,
        listen_websocket,
        resume_websocket,
    )
    from holdfast.rpc.transports.websocket_protocol import Pulse, token_digest
    from holdfast.rpc.transports.websocket_stream_loop import ServerLimits, WebSocketLimits

__all__ = [
    "HELLO",
    "MESSAGE_BYTES_MAX",
    "Beat",
    "ChildTransport",
    "Command",
    "Connection",
    "Evidence",
    "Follower",
    "Gate",
    "Handler",
    "Hello",
    "Limits",
    "Lines",
    "Overflow",
    "Pulse",
    "Remains",
    "Rhythm",
    "ServerLimits",
    "Service",
    "StdioTransport",
    "Subscription",
    "Tail",
    "Terms",
    "Transport",
    "UnixServer",
    "UnixTransport",
    "WebSocketLimits",
    "WebSocketServer",
    "WebSocketTransport",
    "Welcome",
    "connect",
    "connect_websocket",
    "excerpt",
    "foreign_error",
    "heartbeat",
    "introduce",
    "join",
    "listen",
    "listen_websocket",
    "of_child",
    "own_error",
    "resume_websocket",
    "spawn",
    "token_digest",
    "welcoming",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "HELLO": "heartbeat",
        "MESSAGE_BYTES_MAX": "framing",
        "ChildTransport": "transports.child",
        "Command": "transports.launch",
        "Connection": "connection",
        "Evidence": "framing",
        "Follower": "ports",
        "Gate": "peer",
        "Handler": "dispatch",
        "Hello": "peer",
        "Limits": "peer",
        "Lines": "framing",
        "Overflow": "backlog",
        "Pulse": "transports.websocket_protocol",
        "Remains": "framing",
        "ServerLimits": "transports.websocket_stream_loop",
        "Service": "dispatch",
        "StdioTransport": "transports.stdio",
        "Subscription": "subscription",
        "Tail": "framing",
        "Terms": "connection",
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
        "introduce": "heartbeat",
        "join": "framing",
        "listen": "transports.unix",
        "listen_websocket": "transports.websocket",
        "of_child": "framing",
        "own_error": "dispatch",
        "resume_websocket": "transports.websocket",
        "spawn": "transports.child",
        "token_digest": "transports.websocket_protocol",
        "welcoming": "heartbeat",
    },
)
