"""What servers of the chat-completions format demand beyond the format, as data.

A dialect is chosen by the provider's name, by its address, or, on servers that a person has added,
by the family of the model: open models of Mistral, DeepSeek and Google keep their demands behind
vLLM, LM Studio and gateways.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from holdfast.agent.core.wire_text import call_id

_SHORT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")


class Dialect(NamedTuple):
    """Switches of one kind of server; the defaults are OpenAI's own format."""

    name: str = "plain"
    has_short_ids: bool = False  # ids of calls are nine letters or digits
    parts_tool_and_user: bool = False  # a user's message may not follow that of a tool
    wants_reasoning: bool = (
        False  # calls are refused without `reasoning_content`, also an empty one
    )
    wants_signatures: bool = False  # calls are refused without a `thought_signature`

    def id_of(self, call: str) -> str:
        """The id of a call as the server takes it; the same for the same call every time."""
        name = call_id(call)
        if not self.has_short_ids or _SHORT_ID.fullmatch(name):
            return name
        return hashlib.sha256(name.encode()).hexdigest()[:9]


PLAIN: Final = Dialect()
MISTRAL: Final = Dialect("mistral", has_short_ids=True, parts_tool_and_user=True)
DEEPSEEK: Final = Dialect("deepseek", wants_reasoning=True)
GEMINI: Final = Dialect("gemini", wants_signatures=True)
GEMINI_2: Final = Dialect("gemini-2")  # signatures come, and nothing is refused without them

_HOSTS: Final = {
    "api.mistral.ai": MISTRAL,
    "api.deepseek.com": DEEPSEEK,
    "generativelanguage.googleapis.com": GEMINI,
}
_NAMES: Final = {"mistral": MISTRAL, "deepseek": DEEPSEEK, "google": GEMINI}
_FAMILIES: Final = (
    (
        re.compile(r"(?:mis|minis|magis|mix|devs|codes)tral|pixtral|mathstral"),
        MISTRAL,
    ),
    (re.compile(r"deepseek"), DEEPSEEK),
    (re.compile(r"gemini"), GEMINI),
)
_OLD_GEMINI: Final = re.compile(r"gemini-(?:1|2)[.-]")


def dialect_of(provider: str, url: str, model: str, *, is_known: bool) -> Dialect:
    """The dialect of a model; the family decides only where the provider is not one of ours."""
    found = _NAMES.get(provider) or _HOSTS.get(urlsplit(url).hostname or "")
    family = model.lower()
    if found is None and not is_known:
        found = next((each for known, each in _FAMILIES if known.search(family)), None)
    if found is GEMINI and _OLD_GEMINI.search(family):
        return GEMINI_2
    return found or PLAIN
