"""JSON-RPC peers over transports that may fail in every way.

What it offers is loaded when it is first asked for: not everyone needs all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import face

# At once: a module of the same name would stand in its way later.
from holdfast.rpc.heartbeat import Beat, Rhythm, heartbeat

if TYPE_CHECKING:
    from holdfast.rpc.child import ChildTransport, spawn
    from holdfast.rpc.connection import Connection, Terms
    from holdfast.rpc.core.backlog import Overflow
    from holdfast.rpc.core.ending import Evidence, Remains, of_child
    from holdfast.rpc.core.framing import MESSAGE_BYTES_MAX, Lines, join
    from holdfast.rpc.core.handshake import Gate, Hello, Welcome
    from holdfast.rpc.core.peer import Limits
    from holdfast.rpc.core.tail import Tail, excerpt
    from holdfast.rpc.core.websocket_admission import token_digest
    from holdfast.rpc.core.websocket_pulse import Pulse
    from holdfast.rpc.dispatch import Handler, Service, foreign_error, own_error
    from holdfast.rpc.introduction import HELLO, introduce, welcoming
    from holdfast.rpc.launch import Command
    from holdfast.rpc.ports import Follower, Transport
    from holdfast.rpc.stdio import StdioTransport
    from holdfast.rpc.subscription import Subscription
    from holdfast.rpc.unix import UnixServer, UnixTransport, connect, listen
    from holdfast.rpc.websocket import WebSocketTransport, connect_websocket
    from holdfast.rpc.websocket_server import WebSocketServer, listen_websocket, resume_websocket
    from holdfast.rpc.websocket_server_loop import ServerLimits
    from holdfast.rpc.websocket_stream_loop import WebSocketLimits

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

__getattr__ = face(
    __name__,
    {
        "HELLO": "introduction",
        "MESSAGE_BYTES_MAX": "core.framing",
        "ChildTransport": "child",
        "Command": "launch",
        "Connection": "connection",
        "Evidence": "core.ending",
        "Follower": "ports",
        "Gate": "core.handshake",
        "Handler": "dispatch",
        "Hello": "core.handshake",
        "Limits": "core.peer",
        "Lines": "core.framing",
        "Overflow": "core.backlog",
        "Pulse": "core.websocket_pulse",
        "Remains": "core.ending",
        "ServerLimits": "websocket_server_loop",
        "Service": "dispatch",
        "StdioTransport": "stdio",
        "Subscription": "subscription",
        "Tail": "core.tail",
        "Terms": "connection",
        "Transport": "ports",
        "UnixServer": "unix",
        "UnixTransport": "unix",
        "WebSocketLimits": "websocket_stream_loop",
        "WebSocketServer": "websocket_server",
        "WebSocketTransport": "websocket",
        "Welcome": "core.handshake",
        "connect": "unix",
        "connect_websocket": "websocket",
        "excerpt": "core.tail",
        "foreign_error": "dispatch",
        "introduce": "introduction",
        "join": "core.framing",
        "listen": "unix",
        "listen_websocket": "websocket_server",
        "of_child": "core.ending",
        "own_error": "dispatch",
        "resume_websocket": "websocket_server",
        "spawn": "child",
        "token_digest": "core.websocket_admission",
        "welcoming": "introduction",
    },
)
