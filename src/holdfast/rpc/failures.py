"""What can go wrong between two JSON-RPC peers."""

from __future__ import annotations

from holdfast.failures import Action, Failure, Kind, Recovery


class ConnectionLost(
    Failure,
    code="RPC_CONNECTION_LOST",
    kind=Kind.LOST,
    title="Connection lost",
    user_message="The connection broke off ({reason}). What was in flight has no answer.",
    actions=(Action.RESUME, Action.RETRY, Action.CANCEL),
):
    """The other side went away without saying goodbye."""

    reason: str
    status: int | None = None
    stderr: str = ""
    partial: str = ""


class ConnectionClosed(
    Failure,
    code="RPC_CONNECTION_CLOSED",
    kind=Kind.LOST,
    title="Connection closed",
    user_message="The connection was closed ({reason}). What was in flight has no answer.",
    actions=(Action.RESUME, Action.RETRY, Action.CANCEL),
):
    """One side ended the connection in good order."""

    reason: str
    stderr: str = ""
    partial: str = ""


class RequestTimedOut(
    Failure,
    code="RPC_TIMEOUT",
    kind=Kind.LATE,
    title="No answer in time",
    user_message="{method} was not answered within {limit:g} seconds; it may still happen.",
    recovery=Recovery.ESCALATE,
    actions=(Action.RETRY, Action.CANCEL),
):
    """A request was not answered within its limit, and may still be carried out."""

    method: str
    limit: float


class ErrorResponse(
    Failure,
    code="RPC_ERROR_RESPONSE",
    kind=Kind.BROKEN,
    title="The request was refused",
    user_message="{method} was refused: {error_message}",
):
    """The other side answered a request with an error."""

    method: str
    request: int | str
    error_code: int
    error_message: str
    error_data: object = None


class MessageTooLarge(
    Failure,
    code="RPC_MESSAGE_TOO_LARGE",
    kind=Kind.BROKEN,
    title="Message too large",
    user_message="A message of more than {bytes_max} bytes arrived, so the connection was ended.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """One message exceeds what we agreed to hold in memory."""

    bytes_max: int


class TooManyRequests(
    Failure,
    code="RPC_TOO_MANY_REQUESTS",
    kind=Kind.BUSY,
    title="Too many requests at once",
    user_message="{in_flight_max} requests are waiting for answers already; try again shortly.",
    actions=(Action.RETRY, Action.WAIT),
):
    """As many requests are in flight as this connection allows."""

    in_flight_max: int


class Unencodable(
    Failure,
    code="RPC_UNENCODABLE",
    kind=Kind.INVALID,
    title="Not valid JSON",
    user_message="{method} was not sent: its parameters have no JSON form ({reason}).",
):
    """A message has no JSON form that the other side would accept."""

    method: str
    reason: str


class MethodUnknown(
    Failure,
    code="RPC_METHOD_UNKNOWN",
    kind=Kind.MISSING,
    title="Unknown method",
    user_message="The other side asked for {method}, which this version does not offer.",
):
    """A request names a method that nobody here serves."""

    method: str


class ParamsInvalid(
    Failure,
    code="RPC_PARAMS_INVALID",
    kind=Kind.INVALID,
    title="Wrong parameters",
    user_message="{method} was called with parameters that do not fit: {reason}",
):
    """A request carries parameters that do not fit its method."""

    method: str
    reason: str


class AnswerInvalid(
    Failure,
    code="RPC_ANSWER_INVALID",
    kind=Kind.BROKEN,
    title="An answer that does not fit",
    user_message="{method} was answered in a form that this version does not understand: {reason}",
):
    """The other side answered a request with something that does not fit it."""

    method: str
    reason: str


class RequestCancelled(
    Failure,
    code="RPC_REQUEST_CANCELLED",
    kind=Kind.CANCELLED,
    title="Cancelled",
    user_message="{method} was cancelled by the side that asked for it.",
):
    """Whoever asked no longer wants the answer."""

    method: str


class HandshakeMissing(
    Failure,
    code="RPC_HANDSHAKE_MISSING",
    kind=Kind.INVALID,
    title="Not introduced yet",
    user_message="{method} was called before the two sides had introduced themselves.",
):
    """A request came before the handshake."""

    method: str


class HandshakeRepeated(
    Failure,
    code="RPC_HANDSHAKE_REPEATED",
    kind=Kind.CONFLICT,
    title="Introduced already",
    user_message="The two sides have introduced themselves already.",
    recovery=Recovery.NONE,
):
    """The handshake was attempted a second time on one connection."""


class VersionRefused(
    Failure,
    code="RPC_VERSION_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="Versions do not meet",
    user_message="This side speaks {protocol} {ours_oldest} to {ours_newest}, the other "
    "{theirs_protocol} {theirs_oldest} to {theirs_newest}. Update the older of the two.",
    actions=(Action.RESTART_BACKEND, Action.CANCEL),
):
    """The two sides have no protocol version in common."""

    protocol: str
    ours_oldest: int
    ours_newest: int
    theirs_protocol: str
    theirs_oldest: int
    theirs_newest: int


class SubscriberDropped(
    Failure,
    code="RPC_SUBSCRIBER_DROPPED",
    kind=Kind.LOST,
    title="Too slow to follow",
    user_message="{dropped} events were not read in time and are gone from this view; "
    "follow again from the last one that was seen.",
    actions=(Action.RESUME,),
):
    """A subscriber that asked to miss nothing was too slow to keep up."""

    dropped: int


class CommandNotFound(
    Failure,
    code="RPC_COMMAND_NOT_FOUND",
    kind=Kind.MISSING,
    title="Program not found",
    user_message="{command} could not be started: {reason}.",
    actions=(Action.OPEN_SETTINGS,),
):
    """The program to speak with does not exist or may not be run."""

    command: str
    reason: str


class SocketRefused(
    Failure,
    code="RPC_SOCKET_REFUSED",
    kind=Kind.UNAVAILABLE,
    title="Nobody is listening",
    user_message="Nothing answers at {path} ({reason}).",
    actions=(Action.RESTART_BACKEND, Action.RETRY),
):
    """Nobody answers at a socket."""

    path: str
    reason: str


class SystemExhausted(
    Failure,
    code="RPC_SYSTEM_EXHAUSTED",
    kind=Kind.BUSY,
    title="The system has no room",
    user_message="Another process or connection could not be opened: {reason}. "
    "Close something that is not needed, then try again.",
    actions=(Action.RETRY, Action.CANCEL),
):
    """The system gave us no further process, descriptor or memory."""

    reason: str


class SocketUnsafe(
    Failure,
    code="RPC_SOCKET_UNSAFE",
    kind=Kind.MISCONFIGURED,
    title="Socket in an unsafe place",
    user_message="{path} cannot be trusted: {reason}. Use a directory that only you can write to.",
    actions=(Action.OPEN_SETTINGS,),
):
    """Someone else could listen, answer or read where our socket is."""

    path: str
    reason: str


class SocketTaken(
    Failure,
    code="RPC_SOCKET_TAKEN",
    kind=Kind.CONFLICT,
    title="Somebody listens there already",
    user_message="Another process answers at {path} already; use that one, or end it first.",
    recovery=Recovery.USE_ALTERNATIVE,
    actions=(Action.CANCEL,),
):
    """A living process listens at the socket that we were to open."""

    path: str


class ListenerUnprotected(
    Failure,
    code="RPC_LISTENER_UNPROTECTED",
    kind=Kind.MISCONFIGURED,
    title="Open to everyone",
    user_message="{url} can be reached from other machines, so it needs a token. "
    "Give one, or listen on 127.0.0.1.",
    actions=(Action.OPEN_SETTINGS,),
):
    """Strangers could reach a listener that asks for no token."""

    url: str


class ListenRefused(
    Failure,
    code="RPC_LISTEN_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="Cannot listen there",
    user_message="{url} cannot be listened at: {reason}. Choose another address or port.",
    actions=(Action.OPEN_SETTINGS,),
):
    """The system does not let us listen at an address."""

    url: str
    reason: str


class AddressInvalid(
    Failure,
    code="RPC_ADDRESS_INVALID",
    kind=Kind.INVALID,
    title="Not an address",
    user_message="{url} is no address for a WebSocket: {reason}. "
    "Use ws://HOST:PORT or unix:///PATH.",
):
    """A URL does not say where to listen or whom to call."""

    url: str
    reason: str


class TokenRefused(
    Failure,
    code="RPC_TOKEN_REFUSED",
    kind=Kind.CREDENTIALS,
    title="Token refused",
    user_message="{url} did not accept our token. Check the token file on both sides.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """A server wants another token than ours."""

    url: str


class UpgradeRefused(
    Failure,
    code="RPC_UPGRADE_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="The server turned us away",
    user_message="{url} answered with HTTP status {status} instead of a WebSocket. "
    "Check the address, and by which names the server may be called.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """A server understands us but lets nobody in by this way."""

    url: str
    status: int


class NameRefused(
    Failure,
    code="RPC_NAME_REFUSED",
    kind=Kind.MISCONFIGURED,
    title="The server has another name",
    user_message="The server at {url} does not answer to {name}, by which a forwarded port or a "
    "proxy makes us call it. Start it with --name {name}, or use the address it listens at.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """A server was called by a name that it was not told of; so pages cannot trick it."""

    url: str
    name: str


class ServerFull(
    Failure,
    code="RPC_SERVER_FULL",
    kind=Kind.BUSY,
    title="The server is full",
    user_message="{url} has as many connections as it allows; try again shortly.",
    actions=(Action.RETRY, Action.CANCEL),
):
    """A server has no room for one more connection."""

    url: str


class NotWebSocket(
    Failure,
    code="RPC_NOT_WEBSOCKET",
    kind=Kind.MISCONFIGURED,
    title="Not a WebSocket",
    user_message="What listens at {url} does not speak WebSocket ({reason}). Check the address.",
    actions=(Action.OPEN_SETTINGS, Action.CANCEL),
):
    """Something else than a WebSocket server answers at an address."""

    url: str
    reason: str
