"""Ask models over HTTP: with deadlines for every wait, and nothing kept of a part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Self

from msgspec.structs import replace

from holdfast.agent.attempting import attempting
from holdfast.agent.core.folding import garbled
from holdfast.agent.core.http_asking import Request, Web
from holdfast.agent.core.http_head import Head
from holdfast.agent.core.http_place import Place, Proxies
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
from holdfast.agent.http_loop import HttpWeb
from holdfast.agent.keys import Key, Keys
from holdfast.agent.model import AnyPiece, Choice, ModelMessage, Prompt, Waiting
from holdfast.failures import Failure, RetryPolicy, parse_retry_after, to_wire
from holdfast.world import Chance, Clock


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
        chance: Chance,
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
            place = Place.read(address(provider))
            stranger = replace(provider, name="")  # to whom all thoughts are those of others
            self._lines[name] = _Line(provider, writer(provider), writer(stranger), place)
        return self._lines[name]

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
        talk = Exchange(self._web, choice, self._deadlines)
        secret = None if key is None else key.reveal()
        try:
            head = await talk.send(Request(line.place, headers(line.provider, secret), body))
            if not _is_stream(head):
                full = is_probably_full(body, self.window(choice))
                raise self._refusal(
                    choice, head, await talk.refusal(), is_full=full, secret=secret or ""
                )
            answer = reading(line.provider, choice, self._chance.draw(6).hex())
            async with aclosing(talk.pieces(answer)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            talk.close()

    def _refusal(
        self, choice: Choice, head: Head, said: bytes, *, is_full: bool, secret: str
    ) -> Failure:
        if head.status < 300 and not is_error(said):
            return garbled(choice, "it is no stream of events")
        failure = refused(choice, head.status, said, is_probably_full=is_full, secret=secret)
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
    plain_writer: Writer
    place: Place
    takes_proofs: bool = True


def _has_proofs(prompt: Prompt, provider: str) -> bool:
    said = (each.message for each in prompt.said)
    spoken = (each for each in said if isinstance(each, ModelMessage) and each.provider == provider)
    return any(thinking.proof for message in spoken for thinking in message.thinking)


def _is_stream(head: Head) -> bool:
    kind = head.headers.get("content-type", "")
    return head.status == 200 and kind.lower().startswith("text/event-stream")
