"""The native agent of a session: its models, its tools and its workspace."""

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
    BudgetLimits,
    CrashHistory,
    Deadlines,
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
from holdfast.app.config_rules import BUDGET, WAIT, value_of
from holdfast.app.doctor.keyring import keyring_entries
from holdfast.app.sessions import KeptSession
from holdfast.app.settings import Settings, environment, home_of_person
from holdfast.app.wiring.consent import require_provider_consent
from holdfast.app.wiring.editor import servers_file
from holdfast.app.wiring.keys import keys_of, own_text, providers_of
from holdfast.failures import RetryPolicy
from holdfast.runners import NativeRunner, RunnerEnvironment
from holdfast.workbench import Workbench, git_access_for
from holdfast.world import SystemClock, SystemRandomSource, WriterThread

SCRIPTED: Final = "scripted"  # provider of a scripted model: sends nothing
_SCRIPTED_CHOICE: Final = ModelChoice(SCRIPTED, "script")


def native_runner(
    session: KeptSession,
    stage: RunnerEnvironment,
    bench: Workbench,
    settings: Settings,
    crashes: CrashHistory,
) -> NativeRunner:
    """The native agent for one session; `crashes` is shared by all its runners."""
    configs = partial(_agent_config, session, stage, bench, settings)
    return NativeRunner(configs, crashes, partial(_check_health, session, bench, settings))


async def _check_health(session: KeptSession, bench: Workbench, settings: Settings) -> None:
    """Raise the failure that a conversation would begin with; starts, sends and changes nothing."""
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
    _require_consent(bench, choice.provider)


@asynccontextmanager
async def _agent_config(
    session: KeptSession, stage: RunnerEnvironment, bench: Workbench, settings: Settings
) -> AsyncGenerator[AgentConfig]:
    stage.clear()  # end processes that an earlier agent of this session left
    async with AsyncExitStack() as stack:
        providers = providers_of(settings)
        keys = await _provider_keys(settings, providers)
        models, choice = await _models(session, providers, keys, stack)
        thread = stack.enter_context(WriterThread())
        workspace = DraftWorkspace(bench, session.draft, stage.root, thread, session=session.id)
        sandbox = _sandbox_config(session, stage, keys, bench)
        tool_settings = _tool_settings(settings, session)
        tool_set = await stack.enter_async_context(open_tool_set(sandbox, workspace, tool_settings))
        prompt_context = PromptContext(
            root=stage.root,
            system=_system(),
            day=_day(),
            notes=tool_set.known.notes,
            skills=tool_set.known.skills,
            sandbox=tool_set.known.confinement.for_model(),
        )
        config = AgentConfig(
            models=models,
            choice=choice,
            tools=tool_set.tools,
            system=system_prompt(prompt_context),
            agreed=partial(_require_consent, bench),
            known=keys.known,
            clear=tool_set.clear,
            revision=workspace.revision,
            complaints=tool_set.known.complaints,
            budget=budget_of(session.options),
        )
        below = replace(
            config,
            tools=tool_set.without_person,
            system=system_prompt(replace(prompt_context, can_ask=False)),
        )
        yield replace(config, tools={**config.tools, SubAgent.spec.name: SubAgent(below)})


def _tool_settings(settings: Settings, session: KeptSession | None = None) -> ToolSettings:
    """Tool settings from files of the user; those of a project or draft do not count."""
    home, servers = home_of_person(), settings.config / "mcp.json"
    own = own_servers(str(servers), own_text(servers), environment())
    if session is not None:
        given = servers_file(settings, session.id)
        names = {each.name for each in own}
        theirs = editor_servers(str(given), own_text(given))
        own = (*own, *(each for each in theirs if each.name not in names))
    return ToolSettings(
        permissions=settings.config / "leaves.json",
        skills=(settings.config / "skills", home / ".agents/skills", home / ".claude/skills"),
        servers=own,
    )


async def _provider_keys(settings: Settings, providers: Mapping[str, Provider]) -> Keys:
    """The keys of all providers, loaded now so that redaction knows their values from the start."""
    keys = keys_of(settings, await keyring_entries(providers))
    keys.look_for(providers.values())
    return keys


def _sandbox_config(
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
        return load_script(Path(script)), _SCRIPTED_CHOICE
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


def budget_of(options: Mapping[str, str]) -> BudgetLimits:
    """The budget of one turn, from the options that the session was begun with."""
    given = {
        key.removeprefix(BUDGET): value_of(key, text, where=key)
        for key, text in options.items()
        if key.startswith(BUDGET)
    }
    default = BudgetLimits()
    steps, tokens = given.get("steps"), given.get("tokens")
    cost_usd, seconds = given.get("cost_usd"), given.get("seconds")
    return BudgetLimits(
        steps=default.steps if steps is None else int(steps),
        tokens=None if tokens is None else int(tokens),
        cost_usd=None if cost_usd is None else float(cost_usd),
        seconds=default.seconds if seconds is None else float(seconds),
    )


def waits_of(options: Mapping[str, str]) -> tuple[Deadlines, RetryPolicy]:
    """Deadlines and retry policy of model requests, from the options of the session."""
    given = {
        key.removeprefix(WAIT): float(value_of(key, text, where=key))
        for key, text in options.items()
        if key.startswith(WAIT)
    }
    default, policy = Deadlines(), RetryPolicy()
    first, between = given.get("first_byte"), given.get("between_chunks")
    deadlines = replace(
        default,
        first_byte=first or default.first_byte,
        between_chunks=between or default.between_chunks,
    )
    count = int(given.get("attempts", len(policy.waits) + 1)) - 1
    waits = (policy.waits + (policy.waits[-1],) * count)[:count]
    return deadlines, replace(policy, waits=waits)


def _choice(session: KeptSession) -> ModelChoice:
    options = session.options
    model, effort = options.get("model", ""), options.get("effort", "")
    return chosen(model, _SCRIPTED_CHOICE, effort=effort)


def _require_consent(bench: Workbench, provider: str) -> None:
    require_provider_consent(bench, None if provider == SCRIPTED else provider)


def _system() -> str:
    machine = os.uname()
    return f"{machine.sysname} {machine.release} ({machine.machine})"


def _day() -> str:
    return datetime.fromtimestamp(SystemClock().now(), UTC).date().isoformat()
