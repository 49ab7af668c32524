"""One request to a provider and what comes back of it, with a deadline for every wait."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import anyio

from holdfast.agent.core.folding import Reading
from holdfast.agent.core.http_asking import How, Lost, Request, Web, WebAnswer
from holdfast.agent.core.http_head import Head
from holdfast.agent.core.sse import EventReader, Overlong
from holdfast.agent.failures import AnswerCut, AnswerTooLarge, ModelStalled, ModelUnreachable
from holdfast.agent.model import Answered, AnyPiece, Choice
from holdfast.failures import Failure, Recovery

ANSWER_BYTES_MAX = 64 * 2**20
_REFUSAL_BYTES_MAX = 64 * 1024
_REST_LONGEST = 0.05  # seconds that a whole answer is held up for a connection to be kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long each stage of a request may take, in seconds."""

    connect: float = 15.0
    first_byte: float = 120.0
    between_chunks: float = 300.0  # a model that thinks may say nothing for minutes
    total: float = 3600.0


class Exchange:
    """One request and its answer; nothing of it outlasts `close`."""

    def __init__(self, web: Web, choice: Choice, deadlines: Deadlines) -> None:
        self._web = web
        self._choice = choice
        self._deadlines = deadlines
        now = anyio.current_time()
        self._last = now + deadlines.total
        self._first = now + deadlines.first_byte
        self._answer: WebAnswer | None = None

    async def send(self, request: Request) -> Head:
        """Send the request, and wait until the answer begins."""
        until = min(self._first, self._last)
        found = await self._web.ask(request, connect=self._deadlines.connect, until=until)
        if isinstance(found, Lost):
            self._raise_unheard(found)
        self._answer = found
        return found.head

    async def refusal(self) -> bytes:
        """What is said in place of a stream, as far as it is worth reading."""
        said = b""
        while len(said) < _REFUSAL_BYTES_MAX:
            try:
                chunk = await self._next(until=self._first)
            except Failure:
                break  # that it is a refusal is known already
            if not chunk:
                break
            said += chunk
        return said[:_REFUSAL_BYTES_MAX]

    async def pieces(self, answer: Reading) -> AsyncGenerator[Sequence[AnyPiece]]:
        """The pieces of a stream, chunk by chunk, up to the end of the answer."""
        events, taken = EventReader(), 0
        while chunk := await self._next(until=None if taken else self._first):
            taken += len(chunk)
            if taken > ANSWER_BYTES_MAX:
                raise self._too_large()
            pieces, failure = self._read(events, answer, chunk)
            if pieces and isinstance(pieces[-1], Answered):
                await self._drain()
                yield pieces
                return
            if pieces:
                yield pieces
            if failure is not None:
                raise failure
        rest = answer.end()
        if not rest:
            raise self._cut("it ended too early")
        yield rest

    def close(self) -> None:
        """Let go of the connection: it is kept if the answer is over, else ended at once."""
        if self._answer is not None:
            self._answer.close()

    def _read(
        self, events: EventReader, answer: Reading, chunk: bytes
    ) -> tuple[list[AnyPiece], Failure | None]:
        """The pieces in a chunk, and what is wrong behind them; where chunks end is chance."""
        pieces: list[AnyPiece] = []
        try:
            for event in events.feed(chunk):
                pieces += answer.take(event)
                if pieces and isinstance(pieces[-1], Answered):
                    break
        except Overlong:
            return pieces, self._too_large()
        except Failure as failure:
            return pieces, failure
        return pieces, None

    async def _next(self, *, until: float | None) -> bytes:
        """The next bytes; none at the end."""
        assert self._answer is not None, "nothing was sent"
        stage, limit = "no first byte", self._deadlines.first_byte
        if until is None:
            stage, limit = "silence", self._deadlines.between_chunks
            until = anyio.current_time() + limit
        chunk = await self._answer.read(until=min(until, self._last))
        if not isinstance(chunk, Lost):
            return chunk
        if chunk.how is How.LATE:
            raise self._late(stage, limit, until=until)
        raise self._cut(chunk.reason)

    async def _drain(self) -> None:
        """Read what stands behind the answer, which is nothing, so that the line can be kept."""
        assert self._answer is not None, "nothing was sent"
        until = anyio.current_time() + _REST_LONGEST
        while anyio.current_time() < until:  # what is there already is never late
            rest = await self._answer.read(until=until)
            if not rest or isinstance(rest, Lost):
                return

    def _raise_unheard(self, lost: Lost) -> NoReturn:
        if lost.how is How.UNCONNECTED:
            raise self._stalled("connecting", self._deadlines.connect)
        if lost.how is How.LATE:
            raise self._late("no first byte", self._deadlines.first_byte, until=self._first)
        choice = self._choice
        unheard = ModelUnreachable(provider=choice.provider, model=choice.model, reason=lost.reason)
        if lost.how is How.UNTRUSTED:  # nor will it be trusted the next time
            raise unheard.narrow(retryable=False, recovery=Recovery.ESCALATE)
        raise unheard

    def _late(self, stage: str, limit: float, *, until: float) -> Failure:
        """What has not come in time: this stage, or the whole answer."""
        if until < self._last:
            return self._stalled(stage, limit)
        late = self._stalled("the whole answer", self._deadlines.total)
        return late.narrow(retryable=False, recovery=Recovery.ESCALATE)

    def _stalled(self, stage: str, seconds: float) -> ModelStalled:
        return ModelStalled(
            provider=self._choice.provider, model=self._choice.model, stage=stage, seconds=seconds
        )

    def _cut(self, reason: str) -> AnswerCut:
        return AnswerCut(provider=self._choice.provider, model=self._choice.model, reason=reason)

    def _too_large(self) -> AnswerTooLarge:
        return AnswerTooLarge(
            provider=self._choice.provider, model=self._choice.model, bytes_max=ANSWER_BYTES_MAX
        )
