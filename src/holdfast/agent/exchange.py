"""One request to a provider and what comes back of it, with a deadline for every wait."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import anyio
import httpx2

from holdfast.agent.core.folding import Reading
from holdfast.agent.core.sse import EventReader, Overlong
from holdfast.agent.failures import AnswerCut, AnswerTooLarge, ModelStalled, ModelUnreachable
from holdfast.agent.model import Answered, AnyPiece, Choice
from holdfast.failures import Failure, Recovery

ANSWER_BYTES_MAX = 64 * 2**20
_REFUSAL_BYTES_MAX = 64 * 1024
_CLOSE_LONGEST = 1.0
_REST_LONGEST = 0.05  # seconds that a whole answer is held up for a connection to be kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """How long each stage of a request may take, in seconds."""

    connect: float = 15.0
    first_byte: float = 120.0
    between_chunks: float = 300.0  # a model that thinks may say nothing for minutes
    total: float = 3600.0


class Exchange:
    """One request and its answer; nothing of it outlasts `close`.

    What the library raises is never chained: it holds the request, and that the key.
    """

    def __init__(
        self, transport: httpx2.AsyncBaseTransport, choice: Choice, deadlines: Deadlines
    ) -> None:
        self._transport = transport
        self._choice = choice
        self._deadlines = deadlines
        self._last = anyio.current_time() + deadlines.total
        self._first = anyio.current_time() + deadlines.first_byte
        self._response: httpx2.Response | None = None
        self._chunks: AsyncIterator[bytes] | None = None

    async def send(
        self, url: httpx2.URL, headers: Mapping[str, str], body: bytes
    ) -> httpx2.Response:
        """Send the request, and wait until the answer begins."""
        limits = {"timeout": {"connect": self._deadlines.connect}}
        request = httpx2.Request("POST", url, headers=headers, content=body, extensions=limits)
        lost = ""
        with self._patience("no first byte", self._deadlines.first_byte, until=self._first):
            try:
                self._response = await self._transport.handle_async_request(request)
            except httpx2.ConnectTimeout:
                lost = "connecting"
            except httpx2.TransportError as error:
                lost = type(error).__name__
        if lost == "connecting":
            raise self._stalled("connecting", self._deadlines.connect)
        if self._response is None:
            raise ModelUnreachable(
                provider=self._choice.provider, model=self._choice.model, reason=lost
            )
        self._chunks = self._response.aiter_raw()
        return self._response

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
            pieces = self._read(events, answer, chunk)
            if pieces and isinstance(pieces[-1], Answered):
                await self._drain()
                yield pieces
                return
            if pieces:
                yield pieces
        rest = answer.end()
        if not rest:
            raise self._cut("it ended too early")
        yield rest

    async def close(self) -> None:
        """Let go of the connection: it is kept if the answer is over, else closed at once."""
        if self._response is not None:
            with anyio.move_on_after(_CLOSE_LONGEST, shield=True):
                await self._response.aclose()

    def _read(self, events: EventReader, answer: Reading, chunk: bytes) -> list[AnyPiece]:
        try:
            found = events.feed(chunk)
        except Overlong:
            raise self._too_large() from None
        pieces: list[AnyPiece] = []
        for event in found:
            pieces += answer.take(event)
            if pieces and isinstance(pieces[-1], Answered):
                break
        return pieces

    async def _next(self, *, until: float | None) -> bytes:
        """The next bytes; none at the end."""
        stage, limit = "silence", self._deadlines.between_chunks
        if until is None:
            until = anyio.current_time() + limit
        else:
            stage, limit = "no first byte", self._deadlines.first_byte
        lost, chunk = "", b""
        with self._patience(stage, limit, until=until):
            try:
                chunk = await self._chunk()
            except httpx2.TransportError as error:
                lost = type(error).__name__
        if lost:
            raise self._cut(lost)
        return chunk

    async def _chunk(self) -> bytes:
        assert self._chunks is not None, "nothing was sent"
        return await anext(self._chunks, b"")

    async def _drain(self) -> None:
        """Read what stands behind the answer, which is nothing, so that the line can be kept."""
        with anyio.move_on_after(_REST_LONGEST):
            try:
                while await self._chunk():
                    pass
            except httpx2.TransportError:
                return

    @contextmanager
    def _patience(self, stage: str, limit: float, *, until: float) -> Generator[None]:
        """Raise what has not come in time: this stage, or the whole answer."""
        with anyio.CancelScope(deadline=min(until, self._last)) as scope:
            yield
        if scope.cancelled_caught:
            if until < self._last:
                raise self._stalled(stage, limit)
            late = self._stalled("the whole answer", self._deadlines.total)
            raise late.narrow(retryable=False, recovery=Recovery.ESCALATE)

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
