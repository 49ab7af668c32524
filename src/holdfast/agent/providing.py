"""Ask models over HTTP: with deadlines for every wait, and nothing kept of a part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Self

import anyio
from msgspec.structs import replace

from holdfast.agent.attempting import attempting
from holdfast.agent.core.folding import garbled
from holdfast.agent.core.http_asking import Lost, Request, Web, WebAnswer
from holdfast.agent.core.http_head import Head
from holdfast.agent.core.http_place import Place, Proxies
from holdfast.agent.core.ollama import STATUS_BYTES_MAX, loaded_window, status_address
from holdfast.agent.core.prices import Prices
from holdfast.agent.core.provider_failures import PromptSize, is_error, refused
from holdfast.agent.core.providers import Provider
from holdfast.agent.core.request import (
    TOKEN_BYTES,
    Writer,
    address,
    headers,
    reading,
    size_of,
    writer,
)
from holdfast.agent.core.wire_text import Omitted
from holdfast.agent.exchange import Deadlines, Exchange
from holdfast.agent.failures import ContextTooLong, ProviderUnknown, RequestRefused
from holdfast.agent.http_loop import HttpWeb
from holdfast.agent.keys import Key, Keys
from holdfast.agent.model import AnyPiece, Choice, ModelMessage, Prompt, Said, Tokens, Waiting
from holdfast.failures import Failure, RetryPolicy, parse_retry_after, to_wire
from holdfast.world import Chance, Clock

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

    def price(self, choice: Choice, tokens: Tokens) -> float | None:
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
        self, line: _Line, key: Key | None, choice: Choice, prompt: Prompt
    ) -> AsyncGenerator[Sequence[AnyPiece]]:
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
        bare: dict[str, Said] = {}
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
            yield (Waiting(seconds=0.0, failure=told, attempt=2),)

    async def _ask(
        self, line: _Line, key: Key | None, choice: Choice, body: bytes
    ) -> AsyncGenerator[Sequence[AnyPiece]]:
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
        self, choice: Choice, head: Head, said: bytes, *, size: PromptSize, secret: str
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
    bare: dict[str, Said] = field(default_factory=dict[str, Said])
    """Messages whose thinking and signatures were refused, without them, by their ids."""
    without: dict[str, Omitted] = field(default_factory=dict[str, Omitted])
    """Options that were refused, by model."""
    refused_at: dict[str, int] = field(default_factory=dict[str, int])
    """The fewest tokens that were refused as too many, by model."""


def _bare(said: Sequence[Said], provider: str) -> dict[str, Said]:
    """Messages with something that only this provider can verify, as if others had said them."""
    return {
        each.id: Said(each.id, _foreign(each.message))
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
