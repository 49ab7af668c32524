"""Ask models over HTTP: with deadlines for every wait, and nothing kept of a part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.resources import files
from typing import NoReturn, Self

import anyio
from msgspec.structs import replace

from holdfast.agent.failures import (
    AnswerCut,
    AnswerTooLarge,
    ContextTooLong,
    ModelStalled,
    ModelUnreachable,
    ProviderUnknown,
    RequestRefused,
)
from holdfast.agent.model import (
    AnswerCompleted,
    AnyAnswerDelta,
    ModelChoice,
    ModelMessage,
    ModelRequest,
    PromptMessage,
    RetryScheduled,
    Tokens,
)
from holdfast.agent.providers.errors import PromptSize, is_error, refused
from holdfast.agent.providers.formats import (
    TOKEN_BYTES,
    Writer,
    address,
    headers,
    reading,
    size_of,
    writer,
)
from holdfast.agent.providers.http_client_loop import HttpWeb
from holdfast.agent.providers.http_request import How, Lost, Place, Proxies, Request, Web, WebAnswer
from holdfast.agent.providers.http_response import Head
from holdfast.agent.providers.keys import ApiKey, Keys
from holdfast.agent.providers.ollama import STATUS_BYTES_MAX, loaded_window, status_address
from holdfast.agent.providers.registry import Prices, Provider, read_prices
from holdfast.agent.providers.retry import attempting
from holdfast.agent.providers.stream import AnswerParser, EventReader, Overlong, garbled
from holdfast.agent.providers.text import Omitted
from holdfast.failures import Failure, Recovery, RetryPolicy, parse_retry_after, to_wire
from holdfast.world import Clock, RandomSource

# One request to a provider and what comes back of it, with a deadline for every wait.

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

    def __init__(self, web: Web, choice: ModelChoice, deadlines: Deadlines) -> None:
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

    async def pieces(self, answer: AnswerParser) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
        """The pieces of a stream, chunk by chunk, up to the end of the answer."""
        events, taken = EventReader(), 0
        while chunk := await self._next(until=None if taken else self._first):
            taken += len(chunk)
            if taken > ANSWER_BYTES_MAX:
                raise self._too_large()
            pieces, failure = self._read(events, answer, chunk)
            if pieces and isinstance(pieces[-1], AnswerCompleted):
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
        self, events: EventReader, answer: AnswerParser, chunk: bytes
    ) -> tuple[list[AnyAnswerDelta], Failure | None]:
        """The pieces in a chunk, and what is wrong behind them; where chunks end is chance."""
        pieces: list[AnyAnswerDelta] = []
        try:
            for event in events.feed(chunk):
                pieces += answer.take(event)
                if pieces and isinstance(pieces[-1], AnswerCompleted):
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


_STATUS_LONGEST = 2.0  # seconds that a word about what is loaded is waited for
_OPTIONAL = frozenset(
    {
        "include",
        "parallel_tool_calls",
        "prompt_cache_key",
        "reasoning",
        "reasoning.effort",
        "reasoning.summary",  # OpenAI: only for organisations that it has verified
        "reasoning_effort",
        "stream_options",
    }
)
"""Options without which a request means the same, or nearly so."""


class HttpModels:
    """Answers for the models of all providers that the person has; to be used in a block.

    Redirections are not followed, certificates are verified, and there is no proxy but one of
    those that the wiring names.
    """

    def __init__(  # noqa: PLR0913  # all that the wiring decides, by keyword
        self,
        providers: Mapping[str, Provider],
        *,
        keys: Keys,
        prices: Prices,
        clock: Clock,
        chance: RandomSource,
        deadlines: Deadlines | None = None,
        policy: RetryPolicy | None = None,
        proxies: Proxies | None = None,
        web: Web | None = None,
    ) -> None:
        self._providers = providers
        self._keys = keys
        self._prices = prices
        self._clock = clock
        self._chance = chance
        self._deadlines = deadlines or Deadlines()
        self._policy = policy or RetryPolicy()
        self._web = web or HttpWeb(proxies=proxies)
        self._lines: dict[str, _Line] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._web.close()

    @asynccontextmanager
    async def answering(
        self, choice: ModelChoice, prompt: ModelRequest
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyAnswerDelta]]]:
        """Ask a model; who leaves the block has closed the connection."""
        line = self._line(choice.provider)
        key = self._keys.find(line.provider)
        ask = partial(self._ask_anyhow, line, key, choice, prompt)
        async with aclosing(attempting(ask, policy=self._policy, chance=self._chance)) as pieces:
            yield pieces

    def window(self, choice: ModelChoice) -> int | None:
        """How many tokens fit into the model, if the person or the list of prices says so.

        Ollama says with how many a model is loaded. What a server has refused as too long bounds a
        window that nobody knows.
        """
        provider = self._providers.get(choice.provider)
        told = None if provider is None else provider.limits_of(choice.model).window
        line = self._lines.get(choice.provider)
        loaded = None if line is None else line.loaded.get(choice.model)
        known = told or loaded or self._prices.window(choice)
        return known or (None if line is None else line.refused_at.get(choice.model))

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        """What so many tokens cost, if the list of prices knows the model."""
        return self._prices.price(choice, tokens)

    def _line(self, name: str) -> _Line:
        provider = self._providers.get(name)
        if provider is None:
            raise ProviderUnknown(provider=name, known=", ".join(sorted(self._providers)))
        if name not in self._lines:
            status = status_address(provider)
            self._lines[name] = _Line(
                provider,
                writer(provider),
                Place.read(address(provider)),
                None if status is None else Place.read(status),
            )
        return self._lines[name]

    async def _ask_anyhow(
        self, line: _Line, key: ApiKey | None, choice: ModelChoice, prompt: ModelRequest
    ) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
        """Ask; if that is refused, once more without what the provider may have refused.

        An option that it names is left out from then on. Else thinking and signatures are left out
        of the messages that it was sent: they do not hold any more when a key, an account or a
        gateway was changed, and not every provider has a word for it. Messages that come later
        keep theirs.
        """
        if prompt.output_max is None:
            most = line.provider.limits_of(choice.model).max_output
            prompt = replace(prompt, output_max=most)
        without = line.without.get(choice.model, frozenset())
        bare: dict[str, PromptMessage] = {}
        while True:
            said = tuple(line.bare.get(each.id, bare.get(each.id, each)) for each in prompt.said)
            body = line.writer.body(choice, replace(prompt, said=said), without)
            try:
                async with aclosing(self._ask(line, key, choice, body)) as batches:
                    async for batch in batches:
                        line.bare |= bare
                        line.without[choice.model] = without
                        yield batch
                return
            except RequestRefused as failure:
                if failure.param in _OPTIONAL and failure.param not in without:
                    without |= {failure.param}
                elif not bare and (found := _bare(said, choice.provider)):
                    bare = found
                else:
                    raise
                told = to_wire(failure)
            except ContextTooLong:
                tokens = len(body) // TOKEN_BYTES
                line.refused_at[choice.model] = min(
                    tokens, line.refused_at.get(choice.model, tokens)
                )
                raise
            yield (RetryScheduled(seconds=0.0, failure=told, attempt=2),)

    async def _ask(
        self, line: _Line, key: ApiKey | None, choice: ModelChoice, body: bytes
    ) -> AsyncGenerator[Sequence[AnyAnswerDelta]]:
        talk = Exchange(self._web, choice, self._deadlines)
        secret = None if key is None else key.reveal()
        size = size_of(body, self.window(choice))
        try:
            head = await talk.send(Request(line.place, headers(line.provider, secret), body))
            if not _is_stream(head):
                said = await talk.refusal()
                raise self._refusal(choice, head, said, size=size, secret=secret or "")
            answer = reading(line.provider, choice, self._chance.draw(6).hex(), size)
            async with aclosing(talk.pieces(answer)) as batches:
                is_begun = False
                async for batch in batches:
                    if not is_begun and line.status is not None:
                        await self._look_up(line, line.status, choice.model)
                    is_begun = True
                    yield batch
        finally:
            talk.close()

    async def _look_up(self, line: _Line, status: Place, model: str) -> None:
        """Learn with which window a model is loaded; a server that does not say is asked once.

        It is asked at every answer: a model can be loaded again with another window.
        """
        until = anyio.current_time() + _STATUS_LONGEST
        request = Request(status, {"accept": "application/json"}, b"", "GET")
        answer = await self._web.ask(request, connect=_STATUS_LONGEST, until=until)
        window = None
        if not isinstance(answer, Lost):
            try:
                window = loaded_window(await _whole(answer, until), model)
            finally:
                answer.close()
        if window is None:
            line.status = None
        else:
            line.loaded[model] = window

    def _refusal(
        self, choice: ModelChoice, head: Head, said: bytes, *, size: PromptSize, secret: str
    ) -> Failure:
        if head.status < 300 and not is_error(said):
            return garbled(choice, "it is no stream of events")
        failure = refused(choice, head.status, said, size=size, secret=secret)
        wait = self._wait(head.headers)
        return failure.narrow(retry_after=wait) if wait is not None else failure

    def _wait(self, told: Mapping[str, str]) -> float | None:
        """How long the provider wants us to wait; some say it to the millisecond."""
        exactly = told.get("retry-after-ms", "")
        if exactly.isascii() and exactly.isdigit():
            return float(exactly[:18]) / 1000
        return parse_retry_after(told.get("retry-after", ""), now=self._clock.now())


@dataclass(slots=True)
class _Line:
    """What is kept of a provider from one request to the next."""

    provider: Provider
    writer: Writer
    place: Place
    status: Place | None = None
    """Where it says what it has loaded, if it does."""
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    """The windows with which models are loaded."""
    bare: dict[str, PromptMessage] = field(default_factory=dict[str, PromptMessage])
    """Messages whose thinking and signatures were refused, without them, by their ids."""
    without: dict[str, Omitted] = field(default_factory=dict[str, Omitted])
    """Options that were refused, by model."""
    refused_at: dict[str, int] = field(default_factory=dict[str, int])
    """The fewest tokens that were refused as too many, by model."""


def _bare(said: Sequence[PromptMessage], provider: str) -> dict[str, PromptMessage]:
    """Messages with something that only this provider can verify, as if others had said them."""
    return {
        each.id: PromptMessage(each.id, _foreign(each.message))
        for each in said
        if isinstance(each.message, ModelMessage)
        and each.message.provider == provider
        and _has_proofs(each.message)
    }


def _foreign(message: ModelMessage) -> ModelMessage:
    calls = tuple(replace(call, opaque="") for call in message.calls)
    return replace(message, thinking=(), calls=calls, provider="", order=())


def _has_proofs(message: ModelMessage) -> bool:
    thinking = any(each.proof for each in message.thinking)
    return thinking or any(call.opaque for call in message.calls)


async def _whole(answer: WebAnswer, until: float) -> bytes:
    """The body of an answer; of one that is lost or too long, a part."""
    body = b""
    while answer.head.status == 200 and len(body) < STATUS_BYTES_MAX:
        chunk = await answer.read(until=until)
        if not chunk or isinstance(chunk, Lost):
            break
        body += chunk
    return body


def _is_stream(head: Head) -> bool:
    kind = head.headers.get("content-type", "")
    return head.status == 200 and kind.lower().startswith("text/event-stream")


# Load the list of prices that comes with the program; `make prices` makes it anew.


@cache
def load_prices() -> Prices:
    """The list, read once."""
    return read_prices(files("holdfast.agent").joinpath("prices.json").read_bytes())
