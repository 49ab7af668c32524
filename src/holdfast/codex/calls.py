"""Ask the app-server: each method within its limit, again when it was too busy to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from msgspec import Raw

from holdfast.codex.failures import CodexOverloaded
from holdfast.codex.versions import UNKNOWN, incompatible
from holdfast.codex.wire.generated import CommandExecParams
from holdfast.codex.wire.message import WireMessage
from holdfast.codex.wire.reading import read_answer
from holdfast.failures import Failure, RetryPolicy
from holdfast.rpc import Connection
from holdfast.rpc.failures import AnswerInvalid, ErrorResponse
from holdfast.telemetry import Telemetry
from holdfast.telemetry.model import Level
from holdfast.world import RandomSource, RetryWait, retrying

# How long each method may take to be answered, unless its caller says otherwise.

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


_OVERLOADED = -32001
_POLICY = RetryPolicy()
M = TypeVar("M", bound=WireMessage)


@dataclass(frozen=True, slots=True)
class RequestSender:
    """The requests of one connection."""

    connection: Connection
    telemetry: Telemetry
    chance: RandomSource
    version: str = UNKNOWN  # of the server

    async def typed(
        self, method: str, params: WireMessage, result: type[M], *, timeout: float | None = None
    ) -> M:
        """Ask and read the answer, forgiving what a newer server adds or drops."""
        return self.read(method, result, await self.raw(method, params, timeout=timeout))

    def read(self, method: str, result: type[M], answer: Raw) -> M:
        """Read an answer; raise `CodexIncompatible` where it lacks what is needed."""
        try:
            return read_answer(method, result, answer)
        except AnswerInvalid as misfit:
            raise incompatible(method, misfit.reason, version=self.version) from misfit

    async def raw(self, method: str, params: object, *, timeout: float | None = None) -> Raw:
        """Ask and return the answer as it came."""
        limit = limit_of(method, params) if timeout is None else timeout
        try:
            return await self.connection.request(method, params, timeout=limit)
        except ErrorResponse as refusal:
            if refusal.error_code != _OVERLOADED:
                raise
            return await self._insist(method, params, limit=limit, refusal=refusal)

    async def _insist(
        self, method: str, params: object, *, limit: float, refusal: ErrorResponse
    ) -> Raw:
        """Ask again what the server turned away: it has done nothing, so that is safe."""
        refusals = [refusal]

        async def once() -> Raw | Failure:
            try:
                if refusals:
                    raise refusals.pop()
                return await self.connection.request(method, params, timeout=limit)
            except Failure as failure:
                if isinstance(failure, ErrorResponse) and failure.error_code == _OVERLOADED:
                    raise CodexOverloaded(method=method) from failure
                return failure  # whatever else went wrong, asking again may not be safe

        answer = await retrying(
            once, safe=True, policy=_POLICY, chance=self.chance, announce=self._announce
        )
        if isinstance(answer, Failure):
            raise answer
        return answer

    async def _announce(self, waiting: RetryWait) -> None:
        again = {"wait": waiting.wait, "retry": waiting.retry, "retries_max": waiting.retries_max}
        self.telemetry.note(Level.WARNING, "codex is overloaded; asking again", fields=again)
