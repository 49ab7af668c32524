"""What is sent to a provider, and where, in each of the formats."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from holdfast import __version__
from holdfast.agent.model import ModelChoice, ModelRequest
from holdfast.agent.providers import chat, messages, responses
from holdfast.agent.providers.chat import ChatParser, ChatWriter, chat_dialect
from holdfast.agent.providers.errors import UNKNOWN_SIZE, PromptSize
from holdfast.agent.providers.messages import MessagesParser, MessagesWriter
from holdfast.agent.providers.registry import KNOWN, Format, Provider
from holdfast.agent.providers.responses import ResponsesParser, ResponsesWriter
from holdfast.agent.providers.stream import AnswerParser
from holdfast.agent.providers.text import Omitted

_PATHS = {
    Format.RESPONSES: responses.PATH,
    Format.CHAT: chat.PATH,
    Format.MESSAGES: messages.PATH,
}
TOKEN_BYTES = 3  # fewer bytes than that are rarely a token


class Writer(Protocol):
    """Writes prompts as bodies of requests."""

    def body(
        self, choice: ModelChoice, prompt: ModelRequest, without: Omitted = frozenset()
    ) -> bytes:
        """The whole body of a request, without options that the provider has refused."""
        ...


def writer(provider: Provider) -> Writer:
    """Who writes for a provider; it remembers what it has written."""
    match provider.format:
        case Format.RESPONSES:
            return ResponsesWriter(provider.name)
        case Format.CHAT:
            return ChatWriter(
                provider.name,
                partial(chat_dialect, provider.name, provider.url, is_known=provider.name in KNOWN),
            )
        case Format.MESSAGES:
            return MessagesWriter(provider.name)


def reading(
    provider: Provider, choice: ModelChoice, fresh: str, size: PromptSize = UNKNOWN_SIZE
) -> AnswerParser:
    """Who reads one answer of a provider; `fresh` is what unnamed calls are named with."""
    match provider.format:
        case Format.RESPONSES:
            return ResponsesParser(choice)
        case Format.CHAT:
            return ChatParser(choice, fresh, size)
        case Format.MESSAGES:
            return MessagesParser(choice)


def address(provider: Provider) -> str:
    """Where requests go."""
    return provider.url + _PATHS[provider.format]


def headers(provider: Provider, key: str | None) -> dict[str, str]:
    """The headers of a request; without a key, none that shows one."""
    named = {
        "accept": "text/event-stream",
        "content-type": "application/json",
        "user-agent": f"holdfast/{__version__}",
    }
    if provider.format is Format.MESSAGES:
        named["anthropic-version"] = messages.VERSION
        return named if key is None else {**named, "x-api-key": key}
    return named if key is None else {**named, "authorization": f"Bearer {key}"}


def size_of(body: bytes, window: int | None) -> PromptSize:
    """About how many tokens a request has, at most, and how many fit."""
    return PromptSize(len(body) // TOKEN_BYTES, window)
