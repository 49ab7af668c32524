"""The agent for a new session: which ones this machine has, and which one was chosen last.

The last choice and the paths of sample projects are stored in `agent.json` in the state directory.
A file that cannot be read counts as empty; the next new session asks for an agent again.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from holdfast.app.settings import Settings
from holdfast.runners import is_sample
from holdfast.world import SystemDisk, make_private, replace_file

SCRIPTED: Final = "rehearsal"  # the runner that plays a script: no key, no network
MODEL_PLACEHOLDER: Final = "MODEL"  # the user must replace it with the name of a model
_FILE: Final = "agent.json"
_SAMPLES_MAX: Final = 100

# A widely used model of each provider; only the proposed command depends on it.
USUAL_MODELS: Final = {
    "anthropic": "claude-sonnet-5",
    "deepseek": "deepseek-chat",
    "google": "gemini-2.5-pro",
    "mistral": "mistral-large-latest",
    "openai": "gpt-5.1",
    "xai": "grok-4",
}


class ChosenAgent(msgspec.Struct, frozen=True):
    """A runner and, for `native`, its PROVIDER/MODEL."""

    runner: str
    model: str = ""


class FoundAgent(NamedTuple):
    """An agent that this machine can start, and the reason why it is listed.

    `model` is PROVIDER/MODEL for the runner `native`, otherwise empty.
    """

    runner: str
    reason: str
    model: str = ""

    @property
    def needs_model(self) -> bool:
        """Whether `model` still holds the placeholder."""
        return self.model.endswith(f"/{MODEL_PLACEHOLDER}")


DEMO: Final = FoundAgent(SCRIPTED, "a scripted agent: no key, no network, no real answers")


class AgentChoices:
    """Reads and writes `agent.json` in a state directory."""

    def __init__(self, state: Path) -> None:
        self._state = state

    def last(self) -> ChosenAgent | None:
        """The agent that was chosen last, or None if none ever was."""
        return self._read().chosen

    def remember(self, chosen: ChosenAgent) -> bool:
        """Store a choice durably; return whether it differs from the last one."""
        stored = self._read()
        if stored.chosen == chosen:
            return False
        self._write(msgspec.structs.replace(stored, chosen=chosen))
        return True

    def add_sample(self, project: Path) -> None:
        """Record that `holdfast demo` wrote a sample project into this directory."""
        stored, added = self._read(), str(project.resolve())
        samples = (*(each for each in stored.samples if each != added), added)[-_SAMPLES_MAX:]
        self._write(msgspec.structs.replace(stored, samples=samples))

    def sample_at(self, directory: Path) -> Path | None:
        """The sample project that contains this directory, or None.

        The content is checked as well as the path: another project may have replaced the sample
        under the same name, and the scripted agent must not start there.
        """
        resolved = directory.resolve()
        samples = map(Path, self._read().samples)
        return next(
            (each for each in samples if resolved.is_relative_to(each) and is_sample(each)), None
        )

    def _read(self) -> _Stored:
        try:
            return msgspec.json.decode((self._state / _FILE).read_bytes(), type=_Stored)
        except (OSError, ValueError):
            return _Stored()

    def _write(self, stored: _Stored) -> None:
        make_private(self._state)
        replace_file(SystemDisk(), self._state / _FILE, [msgspec.json.encode(stored)])


class _Stored(msgspec.Struct, frozen=True):
    chosen: ChosenAgent | None = None
    samples: tuple[str, ...] = ()


def default_agent(settings: Settings, directory: Path) -> ChosenAgent | None:
    """The agent of a new session where neither flags nor settings name one.

    That is the scripted agent in a sample project and the last choice elsewhere; None if the user
    has to choose.
    """
    choices = AgentChoices(settings.state)
    if choices.sample_at(directory) is not None:
        return ChosenAgent(SCRIPTED)
    return choices.last()


async def found_agents(settings: Settings) -> list[FoundAgent]:
    """The agents that can be started: providers with a key, Codex if installed, the demo."""
    from holdfast.app.doctor.keyring import keyring_entries
    from holdfast.app.wiring.keys import keys_of, providers_of

    providers = providers_of(settings)
    keys = keys_of(settings, await keyring_entries(providers))
    found = [
        provider_agent(name, f"a key of {name} is there")
        for name, provider in sorted(providers.items())
        if provider.variable and keys.has(provider)
    ]
    codex = shutil.which(settings.codex)
    if codex is not None:
        found.append(FoundAgent("codex", f"Codex is installed: {codex}"))
    return [*found, DEMO]


def provider_agent(provider: str, reason: str) -> FoundAgent:
    """The native agent with the usual model of a provider, or with the placeholder."""
    model = USUAL_MODELS.get(provider, MODEL_PLACEHOLDER)
    return FoundAgent("native", reason, model=f"{provider}/{model}")
