"""Providers: URLs, wire formats, limits and prices.

The person can add providers, or override the known ones, in a TOML file:

    [local]
    format = "chat"
    url = "http://127.0.0.1:8080/v1"

    window = 32768            # tokens that fit into its models at once
    max_output = 8192         # tokens of one answer

    [local.models."qwen3-coder"]
    window = 65536            # this one is loaded with more

    [openai]
    url = "https://gateway.example/v1"

Project files are never read for this, because the configured URL receives the key.
"""

from __future__ import annotations

import re
import tomllib
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from holdfast.agent.failures import SettingsUnreadable
from holdfast.agent.model import ModelChoice, Tokens

# Variables that are removed from the environment of processes.
_SECRET = re.compile(r"[A-Z0-9_]*(KEY|TOKEN|SECRET)")


class Format(StrEnum):
    """Wire format of a provider."""

    RESPONSES = "responses"
    CHAT = "chat"
    MESSAGES = "messages"


TokenCount = Annotated[int, msgspec.Meta(ge=256, le=100_000_000)]


class ModelLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Token limits of a model, as configured by the person."""

    window: TokenCount | None = None
    max_output: TokenCount | None = None


class Provider(msgspec.Struct, frozen=True):
    """A provider; without `variable` it needs no key."""

    name: str
    format: Format
    url: str
    variable: str = ""
    limits: ModelLimits = ModelLimits()
    models: dict[str, ModelLimits] = {}

    def limits_of(self, model: str) -> ModelLimits:
        """Return the limits of a model, or else of the provider."""
        own = self.models.get(model, ModelLimits())
        return ModelLimits(
            own.window or self.limits.window, own.max_output or self.limits.max_output
        )


class _Told(msgspec.Struct, forbid_unknown_fields=True):
    format: Format | None = None
    url: str | None = None
    variable: str | None = None
    window: TokenCount | None = None
    max_output: TokenCount | None = None
    models: dict[str, ModelLimits] = {}


KNOWN: dict[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openai", Format.RESPONSES, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        Provider("anthropic", Format.MESSAGES, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
        Provider("deepseek", Format.CHAT, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
        Provider(
            "google",
            Format.CHAT,
            "https://generativelanguage.googleapis.com/v1beta/openai",
            "GEMINI_API_KEY",
        ),
        Provider("groq", Format.CHAT, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
        Provider("mistral", Format.CHAT, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
        Provider("ollama", Format.CHAT, "http://127.0.0.1:11434/v1"),
        Provider("openrouter", Format.CHAT, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("xai", Format.CHAT, "https://api.x.ai/v1", "XAI_API_KEY"),
    )
}


def read_providers(file: str, text: str) -> dict[str, Provider]:
    """Parse the person's file; return known and configured providers by name."""
    try:
        told = msgspec.convert(tomllib.loads(text), dict[str, _Told])
    except (msgspec.MsgspecError, tomllib.TOMLDecodeError) as error:
        raise SettingsUnreadable(file=file, problem=str(error)) from error
    return KNOWN | {name: _provider(file, name, each) for name, each in told.items()}


def _provider(file: str, name: str, told: _Told) -> Provider:
    known = KNOWN.get(name)
    url = told.url or (known.url if known else "")
    form = told.format or (known.format if known else None)
    variable = told.variable if told.variable is not None else known.variable if known else ""
    if form is None or not url:
        raise SettingsUnreadable(file=file, problem=f"{name} needs a format and a url")
    if variable and not _SECRET.fullmatch(variable):
        problem = f"the variable of {name} must end in KEY, TOKEN or SECRET"
        raise SettingsUnreadable(file=file, problem=problem)
    if problem := _problem(url):
        raise SettingsUnreadable(file=file, problem=f"the url of {name} {problem}")
    limits = ModelLimits(told.window, told.max_output)
    return Provider(name, form, url.rstrip("/"), variable, limits, told.models)


def _problem(url: str) -> str:
    """Return why a URL must not receive a key, or an empty string."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
        host.encode("idna")  # the form that is resolved, and sent to a proxy
    except ValueError:
        return "is none"
    if parts.username is not None or parts.password is not None:
        return "must not hold a password"
    if not host or parts.query or parts.fragment:
        return "must be a plain one"
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host)):
        return ""
    return "must begin with https://, or lead to this very machine"


def is_loopback(host: str) -> bool:
    """Whether a host is a loopback address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


# Prices and context windows, from a list that others maintain.

_MILLION = 1_000_000
_WRITTEN = 1.25  # times the input price, for a cache with a lifetime of five minutes


class Rates(msgspec.Struct, frozen=True, array_like=True):
    """Dollars per million tokens, for requests above a number of tokens."""

    above: int
    input: float
    cached: float | None
    output: float


class Priced(msgspec.Struct, frozen=True):
    """A model of the list: match patterns, window and rates."""

    rates: tuple[Rates, ...]
    window: int | None = None
    equals: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    matches: tuple[str, ...] = ()

    def is_called(self, name: str) -> bool:
        """Whether the entry matches a model name."""
        return (
            name in self.equals
            or name.startswith(self.starts)
            or name.endswith(self.ends)
            or any(part in name for part in self.contains)
            or any(re.search(pattern, name) for pattern in self.matches)
        )


class PriceList(msgspec.Struct, frozen=True):
    """All models by provider; `source` names the origin of the list."""

    source: str
    providers: dict[str, tuple[Priced, ...]]


class Prices:
    """Looks up models; returns None for unknown ones."""

    def __init__(self, known: PriceList) -> None:
        self._known = known
        self._find = lru_cache(maxsize=64)(self._search)

    def window(self, choice: ModelChoice) -> int | None:
        """Return the context window in tokens."""
        found = self._find(choice.provider, choice.model)
        return found.window if found else None

    def price(self, choice: ModelChoice, tokens: Tokens) -> float | None:
        """Return the price in US dollars."""
        found = self._find(choice.provider, choice.model)
        if found is None:
            return None
        rates = next(
            each for each in reversed(found.rates) if tokens.input > each.above or not each.above
        )
        cheaper = rates.input if rates.cached is None else rates.cached
        fresh = max(tokens.input - tokens.cached - tokens.written, 0) + tokens.written * _WRITTEN
        spent = fresh * rates.input + tokens.cached * cheaper + tokens.output * rates.output
        return spent / _MILLION

    def _search(self, provider: str, model: str) -> Priced | None:
        models = self._known.providers.get(provider, ())
        return next((each for each in models if each.is_called(model.lower())), None)


def read_prices(data: bytes) -> Prices:
    """Parse the list."""
    return Prices(msgspec.json.decode(data, type=PriceList))
