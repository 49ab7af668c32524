"""Let picows speak for one side of a WebSocket, from the handshake on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from picows import (
    WSAutoPingStrategy,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
)
from picows import picows as _picows

from holdfast.rpc.core.websocket_admission import (
    ADMITTED,
    NO_TOKEN,
    READY,
    Request,
    Verdict,
)
from holdfast.rpc.websocket_stream_loop import Codec, WebSocketLimits, WebSocketStream
from holdfast.rpc.websocket_wire_loop import READ_BYTES

# picows logs every handshake, with the token in it, and every connection.
_mute = logging.Logger("picows", level=logging.CRITICAL + 1)


def client_codec(
    stream: WebSocketStream,
    *,
    host: str,
    path: str,
    headers: Mapping[str, str],
    limits: WebSocketLimits,
) -> Codec:
    """A codec that asks a server of this name for a WebSocket."""
    return _codec((host, path), lambda *_: stream, headers, limits)


def server_codec(
    stream: WebSocketStream, *, judge: Callable[[Request], Verdict], limits: WebSocketLimits
) -> Codec:
    """A codec that answers a request as judged, and opens the stream to whoever is admitted."""

    def answer(request: WSUpgradeRequest) -> WebSocketStream | WSUpgradeResponseWithListener:
        verdict = judge(_read(request))
        if verdict.status == ADMITTED.status:
            stream.guest = verdict.guest
            return stream
        body = f"{verdict.reason}\n".encode()
        if verdict == READY:
            response = WSUpgradeResponse.create_ok_response(body)
        else:
            response = WSUpgradeResponse.create_error_response(verdict.status, body)
        if verdict == NO_TOKEN:
            response.headers["WWW-Authenticate"] = "Bearer"
        return WSUpgradeResponseWithListener(response, None)

    return _codec((None, None), answer, {}, limits)


def _read(request: WSUpgradeRequest) -> Request:
    headers = request.headers
    return Request(
        path=request.path.decode("latin-1"),
        hosts=tuple(headers.getall("Host", ())),
        origins=tuple(headers.getall("Origin", ())),
        authorizations=tuple(headers.getall("Authorization", ())),
    )


def _codec(
    target: tuple[str, str] | tuple[None, None],
    listener: Callable[..., object],
    headers: Mapping[str, str],
    limits: WebSocketLimits,
) -> Codec:
    """Deadlines, pings and pongs are ours; frames over the limit are refused by their header."""
    made: Codec = vars(_picows)["WSProtocol"](  # which its stubs leave out
        *target,
        target != (None, None),
        listener,
        _mute,
        True,
        None,
        False,
        None,
        None,
        WSAutoPingStrategy.PING_WHEN_IDLE,
        False,
        min(limits.frame_bytes_max, limits.message_bytes_max),
        headers,
        2 * READ_BYTES,
    )
    return made
