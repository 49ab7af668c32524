"""How long each method may take to be answered, unless its caller says otherwise."""

from __future__ import annotations

from holdfast.codex.wire.generated import CommandExecParams

_OTHERWISE = 30.0
_EXACT = {"turn/start": 300.0, "skills/list": 30.0}
_BY_ROOM = {"thread": 30.0, "config": 10.0}
_EXEC_MARGIN = 10.0  # what the server may need beyond the command's own limit


def limit_of(method: str, params: object) -> float:
    """Seconds to wait for the answer to a request."""
    match method, params:
        case "command/exec", {"timeoutMs": int(own)} | CommandExecParams(timeout_ms=int(own)):
            return max(own, 0) / 1000 + _EXEC_MARGIN
        case _:
            room = method.partition("/")[0]
            return _EXACT.get(method, _BY_ROOM.get(room, _OTHERWISE))
