"""Put our own agent together for a session: its models, its tools, and where they work."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from holdfast.agent import (
    AgentConfig,
    CrashHistory,
    DraftWorkspace,
    HttpModels,
    Keys,
    PromptContext,
    Provider,
    Proxies,
    SandboxConfig,
    SubAgent,
    ToolSettings,
    chosen,
    editor_servers,
    load_prices,
    load_script,
    open_tool_set,
    own_servers,
    system_prompt,
    toolchains_in,
    without_keys,
)
from holdfast.agent.failures import ProviderUnknown
from holdfast.agent.model import ModelChoice
from holdfast.agent.ports import Models
from holdfast.app.doctor.keyring import keyring_entries
from holdfast.app.sessions import KeptSession
from holdfast.app.settings import Settings, environment, home_of_person
from holdfast.cli.options import budget_of, waits_of
from holdfast.cli.wiring.consent import require
from holdfast.cli.wiring.editor_files import servers_file
from holdfast.cli.wiring.keys import keys_of, own_text, providers_of
from holdfast.runners import NativeRunner, RunnerEnvironment
from holdfast.workbench import Workbench, git_access_for
from holdfast.world import SystemClock, SystemRandomSource, WriterThread

SCRIPTED: Final = "scripted"  # the provider that sends nothing
_UNSAID: Final = ModelChoice(SCRIPTED, "script")


def native_runner(
    session: KeptSession,
    stage: RunnerEnvironment,
    bench: Workbench,
    settings: Settings,
    crashes: CrashHistory,
) -> NativeRunner:
    """Our own agent, for one session."""
    kits = partial(_kit, session, stage, bench, settings)
    return NativeRunner(kits, crashes, partial(_examine, session, bench, settings))


async def _examine(session: KeptSession, bench: Workbench, settings: Settings) -> None:
    """Raise what a conversation would lack; nothing is started, sent or changed for that."""
    _tool_settings(settings)
    script = session.options.get("scenario")
    if script is not None:
        load_script(Path(script))
        return
    providers, choice = providers_of(settings), _choice(session)
    provider = providers.get(choice.provider)
    if provider is None:
        raise ProviderUnknown(provider=choice.provider, known=", ".join(sorted(providers)))
    (await _provider_keys(settings, providers)).find(provider)
    _agreed(bench, choice.provider)


@asynccontextmanager
async def _kit(
    session: KeptSession, stage: RunnerEnvironment, bench: Workbench, settings: Settings
) -> AsyncGenerator[AgentConfig]:
    stage.clear()  # what an earlier agent of this session has left
    async with AsyncExitStack() as stack:
        providers = providers_of(settings)
        keys = await _provider_keys(settings, providers)
        models, choice = await _models(session, providers, keys, stack)
        thread = stack.enter_context(WriterThread())
        workspace = DraftWorkspace(bench, session.draft, stage.root, thread, session=session.id)
        ground = _ground(session, stage, keys, bench)
        settled = _tool_settings(settings, session)
        box = await stack.enter_async_context(open_tool_set(ground, workspace, settled))
        surroundings = PromptContext(
            root=stage.root,
            system=_system(),
            day=_day(),
            notes=box.known.notes,
            skills=box.known.skills,
            sandbox=box.known.confinement.for_model(),
        )
        kit = AgentConfig(
            models=models,
            choice=choice,
            tools=box.tools,
            system=system_prompt(surroundings),
            agreed=partial(_agreed, bench),
            known=keys.known,
            clear=box.clear,
            revision=workspace.revision,
            complaints=box.known.complaints,
            budget=budget_of(session.options),
        )
        below = replace(
            kit,
            tools=box.without_person,
            system=system_prompt(replace(surroundings, can_ask=False)),
        )
        yield replace(kit, tools={**kit.tools, SubAgent.spec.name: SubAgent(below)})


def _tool_settings(settings: Settings, session: KeptSession | None = None) -> ToolSettings:
    """What the person has settled about tools, in files of their own and nowhere else."""
    home, servers = home_of_person(), settings.config / "mcp.json"
    own = own_servers(str(servers), own_text(servers), environment())
    if session is not None:
        given = servers_file(settings, session.id)
        names = {each.name for each in own}
        theirs = editor_servers(str(given), own_text(given))
        own = (*own, *(each for each in theirs if each.name not in names))
    return ToolSettings(
        leaves=settings.config / "leaves.json",
        skills=(settings.config / "skills", home / ".agents/skills", home / ".claude/skills"),
        servers=own,
    )


async def _provider_keys(settings: Settings, providers: Mapping[str, Provider]) -> Keys:
    """The keys of all providers; those that are there by now are known at once."""
    keys = keys_of(settings, await keyring_entries(providers))
    keys.look_for(providers.values())
    return keys


def _ground(
    session: KeptSession, stage: RunnerEnvironment, keys: Keys, bench: Workbench
) -> SandboxConfig:
    git = git_access_for(bench.project)
    return SandboxConfig(
        processes=stage.processes,
        root=stage.root,
        environment=without_keys(stage.environment, keys.known()),
        scratch=stage.scratch,
        session=session.id,
        readable=(*toolchains_in(home_of_person()), *git.readable),
        writable=git.writable,
    )


async def _models(
    session: KeptSession, providers: Mapping[str, Provider], keys: Keys, stack: AsyncExitStack
) -> tuple[Models, ModelChoice]:
    script = session.options.get("scenario")
    if script is not None:
        return load_script(Path(script)), _UNSAID
    deadlines, policy = waits_of(session.options)
    models = HttpModels(
        providers,
        keys=keys,
        prices=load_prices(),
        clock=SystemClock(),
        chance=SystemRandomSource(),
        proxies=Proxies.read(environment()),
        deadlines=deadlines,
        policy=policy,
    )
    await stack.enter_async_context(models)
    return models, _choice(session)


def _choice(session: KeptSession) -> ModelChoice:
    said = session.options
    return chosen(said.get("model", ""), _UNSAID, effort=said.get("effort", ""))


def _agreed(bench: Workbench, provider: str) -> None:
    require(bench, None if provider == SCRIPTED else provider)


def _system() -> str:
    machine = os.uname()
    return f"{machine.sysname} {machine.release} ({machine.machine})"


def _day() -> str:
    return datetime.fromtimestamp(SystemClock().now(), UTC).date().isoformat()
