"""See to it that a person has agreed before a runner sends anything of a project away."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from holdfast.cli.declarations import Request
from holdfast.cli.terminal import confirmed
from holdfast.runners import Conversation, ReadMemory, Runner, RunnerWrapper
from holdfast.workbench import Consent, Scope, Sending, Workbench, WorkbenchRecords, require_consent
from holdfast.workbench.failures import ConsentRequired
from holdfast.world import SystemClock

_ASK: Final = "Do you agree? [y/n] "
_PAGE: Final = """\
{provider} sends to its model what it reads of this project:
  {project}
It may be all of it. If you agree, that is written down, and you are not
asked again for this project.
"""


def provider_of(runner: str, options: Mapping[str, str]) -> str | None:
    """To whom a runner sends what it reads of a project; None if nothing goes anywhere."""
    match runner:
        case "codex":
            return "codex"
        case "native" if "scenario" not in options:
            return options.get("model", "").partition("/")[0]
        case _:
            return None


def agree(workbench: Workbench, provider: str | None, request: Request) -> None:
    """Let pass what needs no consent or has it; else ask for it, or raise ConsentRequired."""
    try:
        require(workbench, provider)
    except ConsentRequired:
        assert provider is not None, "who is nobody needs no consent"
        page = _PAGE.format(provider=provider, project=workbench.project)
        if not request.has("--consent") and (request.is_json or not confirmed(page, _ASK)):
            raise
        write_down(workbench, provider, is_given=True)


def require(workbench: Workbench, provider: str | None) -> None:
    """Raise ConsentRequired if a provider would be sent what nobody has agreed to."""
    if provider is None:
        return
    require_consent(Sending(str(workbench.project), provider, session=""), said(workbench))


def said(workbench: Workbench) -> tuple[Consent, ...]:
    """Everything that was agreed to or withdrawn about a project, in order."""
    with WorkbenchRecords.open(workbench.directory / "meta") as records:
        return records.consents()


def write_down(workbench: Workbench, provider: str, *, is_given: bool) -> None:
    """Keep that the person agrees, or no longer does; it holds once this returns."""
    consent = Consent(
        project=str(workbench.project),
        provider=provider,
        scope=Scope(),
        is_given=is_given,
        at_ms=int(SystemClock().now() * 1000),
    )
    with workbench.locked() as (handle, _):
        handle.records.consent(consent)


class Agreed(RunnerWrapper):
    """A runner that is launched only while the person's consent holds, also when it is resumed."""

    def __init__(self, runner: Runner, workbench: Workbench) -> None:
        super().__init__(runner)
        self._workbench = workbench

    @asynccontextmanager
    async def converse(
        self, session: str | None, memory: ReadMemory
    ) -> AsyncGenerator[Conversation]:
        """Begin or continue a conversation; ConsentRequired before anything is started."""
        require(self._workbench, provider_of(self.name, {}))
        async with super().converse(session, memory) as conversation:
            yield conversation
