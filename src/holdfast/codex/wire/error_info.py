"""Say what a turn failed of, whatever form the server gives it."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.codex.wire.generated import CodexErrorInfo, CodexErrorKind


class Cause(NamedTuple):
    """What a model failure is called, and the HTTP status behind it where there was one."""

    kind: CodexErrorKind
    name: str  # as the server said it, also where this version has no kind for it
    http_status: int | None = None


def cause_of(info: CodexErrorInfo | None) -> Cause:
    """Read an error info; one that is absent, new or odd is of the kind `other`."""
    name, http_status = "", None
    match info:
        case str():
            name = info
        case dict():
            name, details = next(iter(info.items()), ("", None))
            http_status = _http_status(details)
        case None:
            pass
    kind = CodexErrorKind(name) if name in set(CodexErrorKind) else CodexErrorKind.OTHER
    return Cause(kind, name, http_status)


def _http_status(details: object) -> int | None:
    match details:
        case {"httpStatusCode": int(status)}:
            return status
        case _:
            return None
