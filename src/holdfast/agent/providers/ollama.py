"""Context window of models that Ollama has loaded.

Ollama silently truncates a prompt that exceeds the window with which a model was loaded. The window
depends on the machine and on server settings; `GET /api/ps` returns it for loaded models, which
includes any model that has begun to answer.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from holdfast.agent.providers.registry import Format, Provider

STATUS_BYTES_MAX = 256 * 1024
_PORT = 11434


class _Loaded(msgspec.Struct):
    name: str = ""
    model: str = ""
    context_length: Annotated[int, msgspec.Meta(ge=1)] | None = None


class _Status(msgspec.Struct):
    models: list[_Loaded]


def status_address(provider: Provider) -> str | None:
    """Return the status URL of a provider; None if it is not Ollama."""
    if provider.format is not Format.CHAT:
        return None
    if provider.name != "ollama" and urlsplit(provider.url).port != _PORT:
        return None
    return provider.url.removesuffix("/v1") + "/api/ps"


def loaded_window(body: bytes, model: str) -> int | None:
    """Return the window of a loaded model in tokens, if the response contains it."""
    try:
        loaded = msgspec.json.decode(body, type=_Status).models
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    names = {model, model if ":" in model else f"{model}:latest"}
    found = (each for each in loaded if {each.name, each.model} & names)
    return next((each.context_length for each in found), None)
