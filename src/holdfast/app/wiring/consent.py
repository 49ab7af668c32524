"""Consent of the user before a runner sends content of a project to a provider.

Consent is recorded per project and provider in the workbench's records. It is checked when a
session begins and again whenever a runner is launched, so that a withdrawal takes effect at the
next launch.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from holdfast.runners import Conversation, ReadMemory, Runner, RunnerWrapper
from holdfast.workbench import Consent, Scope, Sending, Workbench, WorkbenchRecords, require_consent
from holdfast.world import SystemClock


def provider_of(runner: str, options: Mapping[str, str]) -> str | None:
    """The provider that receives what a runner reads; None if the runner sends nothing."""
    match runner:
        case "codex":
            return "codex"
        case "native" if "scenario" not in options:
            return options.get("model", "").partition("/")[0]
        case _:
            return None


def require_provider_consent(workbench: Workbench, provider: str | None) -> None:
    """Raise ConsentRequired if the user has not agreed to send this project to the provider."""
    if provider is None:
        return
    sending = Sending(str(workbench.project), provider, session="")
    require_consent(sending, consent_history(workbench))


def consent_history(workbench: Workbench) -> tuple[Consent, ...]:
    """Every consent and withdrawal for a project, oldest first."""
    with WorkbenchRecords.open(workbench.directory / "meta") as records:
        return records.consents()


def record_consent(workbench: Workbench, provider: str, *, is_given: bool) -> None:
    """Record consent or its withdrawal; durable when this returns."""
    consent = Consent(
        project=str(workbench.project),
        provider=provider,
        scope=Scope(),
        is_given=is_given,
        at_ms=int(SystemClock().now() * 1000),
    )
    with workbench.locked() as (handle, _):
        handle.records.consent(consent)


class ConsentCheckedRunner(RunnerWrapper):
    """Wraps a runner so that each launch and resume requires consent that is still in force."""

    def __init__(self, runner: Runner, workbench: Workbench) -> None:
        super().__init__(runner)
        self._workbench = workbench

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        """Begin or continue a conversation; raises ConsentRequired before starting a process."""
        require_provider_consent(self._workbench, provider_of(self.name, {}))
        async with super().converse(session, memory) as conversation:
            yield conversation
