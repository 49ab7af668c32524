"""The agents that were found on this machine, each with the command that starts it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from holdfast.nouns import printable

MODEL: Final = "MODEL"  # stands for the name of a model that the person has to fill in

# A widely used model of each provider; only the command that is proposed depends on it.
_USUAL_MODELS: Final = {
    "anthropic": "claude-sonnet-5",
    "deepseek": "deepseek-chat",
    "google": "gemini-2.5-pro",
    "mistral": "mistral-large-latest",
    "openai": "gpt-5.1",
    "xai": "grok-4",
}


class FoundAgent(NamedTuple):
    """An agent that can be started: its flags, and why it is listed."""

    flags: tuple[str, ...]
    reason: str

    @property
    def needs_model(self) -> bool:
        """Whether the name of a model has to be filled in first."""
        return bool(self.flags) and self.flags[-1].endswith(f"/{MODEL}")

    @property
    def is_ready_model(self) -> bool:
        """Whether this names a model that can be asked as it stands."""
        return self.flags[:1] == ("--model",) and not self.needs_model


DEMO: Final = FoundAgent(("--demo",), "a scripted agent: no key, no network, no real answers")


def provider_agent(provider: str, reason: str) -> FoundAgent:
    """Our own agent with a model of this provider."""
    return FoundAgent(("--model", f"{provider}/{_USUAL_MODELS.get(provider, MODEL)}"), reason)


def usual_models() -> dict[str, str]:
    """The model that is proposed for each provider."""
    return dict(_USUAL_MODELS)


def command_of(found: FoundAgent, command: str) -> str:
    """The command line that starts an agent by `holdfast` or `holdfast ask`."""
    words = ["holdfast", *(["ask"] if command == "ask" else []), *found.flags]
    line = shlex.join(map(printable, words))
    return f'{line} "..."' if command == "ask" else line


def agents_page(
    commands: Sequence[str], reasons: Sequence[str], *, is_numbered: bool = False
) -> str:
    """A line for each agent: how to start it, and why it is listed."""
    widest = max(map(len, commands), default=0)
    page = ""
    for number, (command, reason) in enumerate(zip(commands, reasons, strict=True), 1):
        head = f"{number:>3}  " if is_numbered else "    "
        page += f"{head}{command:<{widest}}  {printable(reason)}\n"
    return page
