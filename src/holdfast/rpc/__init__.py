"""JSON-RPC peers over transports that may fail in every way."""

from holdfast.rpc.child import ChildTransport, spawn
from holdfast.rpc.connection import Connection, Terms
from holdfast.rpc.core.backlog import Overflow
from holdfast.rpc.core.ending import Evidence, Remains, of_child
from holdfast.rpc.core.framing import MESSAGE_BYTES_MAX, Lines, join
from holdfast.rpc.core.handshake import Gate, Hello, Welcome
from holdfast.rpc.core.peer import Limits
from holdfast.rpc.core.tail import Tail, excerpt
from holdfast.rpc.dispatch import Handler, Service, foreign_error, own_error
from holdfast.rpc.heartbeat import Beat, Rhythm, heartbeat
from holdfast.rpc.introduction import HELLO, introduce, welcoming
from holdfast.rpc.launch import Command
from holdfast.rpc.ports import Follower, Transport
from holdfast.rpc.subscription import Subscription
from holdfast.rpc.unix import UnixServer, UnixTransport, connect, listen

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
    "Remains",
    "Rhythm",
    "Service",
    "Subscription",
    "Tail",
    "Terms",
    "Transport",
    "UnixServer",
    "UnixTransport",
    "Welcome",
    "connect",
    "excerpt",
    "foreign_error",
    "heartbeat",
    "introduce",
    "join",
    "listen",
    "of_child",
    "own_error",
    "spawn",
    "welcoming",
]
