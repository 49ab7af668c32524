"""How long each method may take to be answered, unless its caller says otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

_OTHERWISE = 30.0
_EXACT = {"turn/start": 300.0, "skills/list": 30.0}
_BY_ROOM = {"thread": 30.0, "config": 10.0}
_EXEC_MARGIN = 10.0  # what the server may need beyond the command's own limit


def limit_of(method: str, params: object) -> float:
    """Seconds to wait for the answer to a request."""
    if method == "command/exec" and _is_mapping(params):
        own = params.get("timeoutMs")
        if isinstance(own, (int, float)) and own >= 0:
            return own / 1000 + _EXEC_MARGIN
    room = method.partition("/")[0]
    return _EXACT.get(method, _BY_ROOM.get(room, _OTHERWISE))


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)
