"""Ask models over HTTP: with deadlines for every wait, and nothing kept of a part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Self

import anyio
import httpx2
from msgspec.structs import replace

from holdfast.agent.attempting import attempting
from holdfast.agent.core.folding import garbled
from holdfast.agent.core.prices import Prices
from holdfast.agent.core.provider_failures import is_error, refused
from holdfast.agent.core.providers import Provider
from holdfast.agent.core.request import (
    Writer,
    address,
    headers,
    is_probably_full,
    reading,
    writer,
)
from holdfast.agent.exchange import Deadlines, Exchange
from holdfast.agent.failures import ProviderUnknown, RequestRefused
from holdfast.agent.keys import Key, Keys
from holdfast.agent.model import AnyPiece, Choice, ModelMessage, Prompt, Waiting
from holdfast.failures import Failure, RetryPolicy, parse_retry_after, to_wire
from holdfast.world import Chance, Clock

_CLOSE_LONGEST = 1.0
_KEPT = 90.0  # seconds that a connection is kept for the next request


class HttpModels:
    """Answers for the models of all providers that the person has; to be used in a block.

    Redirections are not followed, certificates are verified, and there is no proxy but the one
    that the wiring names.
    """

    def __init__(  # noqa: PLR0913  # all that the wiring decides, by keyword
        self,
        providers: Mapping[str, Provider],
        *,
        keys: Keys,
        prices: Prices,
        clock: Clock,
        chance: Chance,
        deadlines: Deadlines | None = None,
        policy: RetryPolicy | None = None,
        proxy: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._providers = providers
        self._keys = keys
        self._prices = prices
        self._clock = clock
        self._chance = chance
        self._deadlines = deadlines or Deadlines()
        self._policy = policy or RetryPolicy()
        self._proxy = proxy
        self._transport = transport
        self._lines: dict[str, _Line] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        lines, self._lines = self._lines, {}
        for line in lines.values():
            with anyio.move_on_after(_CLOSE_LONGEST, shield=True):
                await line.transport.aclose()

    @asynccontextmanager
    async def answering(
        self, choice: Choice, prompt: Prompt
    ) -> AsyncGenerator[AsyncGenerator[Sequence[AnyPiece]]]:
        """Ask a model; who leaves the block has closed the connection."""
        line = self._line(choice.provider)
        key = self._keys.find(line.provider)
        ask = partial(self._ask_anyhow, line, key, choice, prompt)
        async with aclosing(attempting(ask, policy=self._policy, chance=self._chance)) as pieces:
            yield pieces

    def window(self, choice: Choice) -> int | None:
        """How many tokens fit into the model, if the list of prices knows it."""
        return self._prices.window(choice)

    def price(self, choice: Choice, input: int, cached: int, output: int) -> float | None:
        """What so many tokens cost, if the list of prices knows the model."""
        return self._prices.price(choice, input, cached, output)

    def _line(self, name: str) -> _Line:
        provider = self._providers.get(name)
        if provider is None:
            raise ProviderUnknown(provider=name, known=", ".join(sorted(self._providers)))
        if name not in self._lines:
            url = httpx2.URL(address(provider))
            transport = self._transport or self._connected(url)
            stranger = replace(provider, name="")  # to whom all thoughts are those of others
            self._lines[name] = _Line(provider, writer(provider), writer(stranger), url, transport)
        return self._lines[name]

    def _connected(self, url: httpx2.URL) -> httpx2.AsyncBaseTransport:
        """What keeps connections; a client above it would do nothing that we want."""
        return httpx2.AsyncHTTPTransport(
            verify=url.scheme == "https",  # else there is nothing to be verified
            trust_env=False,
            limits=httpx2.Limits(keepalive_expiry=_KEPT),
            proxy=self._proxy,
        )

    async def _ask_anyhow(
        self, line: _Line, key: Key | None, choice: Choice, prompt: Prompt
    ) -> AsyncGenerator[Sequence[AnyPiece]]:
        """Ask; if that is refused, without the thoughts, whose proofs may not hold any more.

        They do not when a key, an account or a gateway was changed, and not every provider has a
        word for it. Without this, the conversation could never go on.
        """
        if line.takes_proofs:
            try:
                body = line.writer.body(choice, prompt)
                async with aclosing(self._ask(line, key, choice, body)) as batches:
                    async for batch in batches:
                        yield batch
                return
            except RequestRefused as failure:
                if not _has_proofs(prompt, choice.provider):
                    raise
                told = to_wire(failure)
            yield (Waiting(seconds=0.0, failure=told, attempt=2),)
        body = line.plain_writer.body(choice, prompt)
        async with aclosing(self._ask(line, key, choice, body)) as batches:
            async for batch in batches:
                line.takes_proofs = False
                yield batch

    async def _ask(
        self, line: _Line, key: Key | None, choice: Choice, body: bytes
    ) -> AsyncGenerator[Sequence[AnyPiece]]:
        talk = Exchange(line.transport, choice, self._deadlines)
        secret = None if key is None else key.reveal()
        try:
            response = await talk.send(line.url, headers(line.provider, secret), body)
            if not _is_stream(response):
                full = is_probably_full(body, self.window(choice))
                raise self._refusal(
                    choice, response, await talk.refusal(), is_full=full, secret=secret or ""
                )
            answer = reading(line.provider, choice, self._chance.draw(6).hex())
            async with aclosing(talk.pieces(answer)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            await talk.close()

    def _refusal(
        self, choice: Choice, response: httpx2.Response, said: bytes, *, is_full: bool, secret: str
    ) -> Failure:
        if response.is_success and not is_error(said):
            return garbled(choice, "it is no stream of events")
        failure = refused(
            choice, response.status_code, said, is_probably_full=is_full, secret=secret
        )
        wait = self._wait(response.headers)
        return failure.narrow(retry_after=wait) if wait is not None else failure

    def _wait(self, told: httpx2.Headers) -> float | None:
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
    plain_writer: Writer
    url: httpx2.URL
    transport: httpx2.AsyncBaseTransport
    takes_proofs: bool = True


def _has_proofs(prompt: Prompt, provider: str) -> bool:
    said = (each.message for each in prompt.said)
    spoken = (each for each in said if isinstance(each, ModelMessage) and each.provider == provider)
    return any(thinking.proof for message in spoken for thinking in message.thinking)


def _is_stream(response: httpx2.Response) -> bool:
    kind = response.headers.get("content-type", "")
    return response.status_code == 200 and kind.lower().startswith("text/event-stream")
