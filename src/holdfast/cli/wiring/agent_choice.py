"""Choose the agent for a new session, or say which agents there are to choose from.

The first of these counts: flags, settings (environment and config.toml), the sample project (its
agent is the scripted one), the last choice. Otherwise the person is asked; without a terminal the
session does not begin. The scripted agent never starts unasked outside the sample project.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Final

import anyio

from holdfast.app.agent_choice import AgentChoices, ChosenAgent
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.failures import AgentNotChosen, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.options import GOING_ON, here_of
from holdfast.cli.output import complain
from holdfast.cli.render.agents import DEMO, FoundAgent, agents_page, command_of, provider_agent
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.terminal import Terminal
from holdfast.nouns import printable

SCRIPTED: Final = "rehearsal"
REMEMBER: Final = "remember"  # stands in a request whose agent the person chose just now
_ASK: Final = "Which one? Its number, or Enter to leave: "
_AGAIN: Final = "Choose 1 to {count}, or Enter to leave: "
_REMEMBERED: Final = (
    "(Holdfast uses {agent} from now on. Choose another one with --model or --runner.)\n"
)


def with_agent(request: Request, settings: Settings, *, can_ask: bool = True) -> Request:
    """The same request with its runner; raise AgentNotChosen if there is none.

    `request` went through `configured()`, so it has the flags that settings stand for.
    """
    if any(map(request.has, GOING_ON)) or request.has("--runner"):
        return request
    model = request.value("--model")
    if request.has("--demo") or request.has("--scenario"):
        return _with(request, ("--runner", SCRIPTED))
    if model is not None:  # with a provider it would mean native
        problem = f"--model {model}: write PROVIDER/MODEL, or name the agent with --runner"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    choices = AgentChoices(settings.state)
    if choices.sample_at(here_of(request)) is not None:
        return _with(request, ("--runner", SCRIPTED))
    last = choices.last()
    if last is not None:
        flags = (("--runner", last.runner), *((("--model", last.model),) if last.model else ()))
        return _with(request, *flags)
    return anyio.run(_asked, request, settings, can_ask)


def remember(request: Request, settings: Settings) -> None:
    """Keep the agent of a session that began, if the person chose it on the command line."""
    runner, model = request.value("--runner"), request.value("--model") or ""
    is_real = runner not in {None, SCRIPTED} and not request.has("--scenario")
    if runner is None or not is_real or not request.has(REMEMBER):
        return
    if AgentChoices(settings.state).remember(ChosenAgent(runner, model)) and not request.is_json:
        agent = f"{runner} with {printable(model)}" if model else runner
        complain(_REMEMBERED.format(agent=agent))


async def found_agents(settings: Settings) -> list[FoundAgent]:
    """The agents that can be started here: keys by provider, Codex, the demo."""
    from holdfast.app.doctor.keyring import keyring_entries
    from holdfast.cli.wiring.keys import keys_of, providers_of

    providers = providers_of(settings)
    keys = keys_of(settings, await keyring_entries(providers))
    found: list[FoundAgent] = []
    for name, provider in sorted(providers.items()):
        if provider.variable and keys.has(provider):
            found.append(provider_agent(name, f"a key of {name} is there"))
    codex = shutil.which(settings.codex)
    if codex is not None:
        found.append(FoundAgent(("--runner", "codex"), f"Codex is installed: {codex}"))
    return [*found, DEMO]


def not_chosen(failure: AgentNotChosen, look: Look) -> Outcome:
    """What a person reads who has no agent yet: each that was found, with its command."""
    sign = look.paint(look.signs.bad, Tone.BAD)
    lines = [
        f"{sign} {look.paint(failure.title, Tone.STRONG)}",
        "  Nothing was sent. Start one of these; the choice is remembered, except the demo:",
        agents_page(failure.commands, failure.reasons).rstrip("\n"),
        "  To enter a key of a provider: holdfast login PROVIDER",
        look.paint(f"  {failure.code}", Tone.QUIET),
    ]
    return Outcome(status=failure.kind.exit_status, hint="\n".join(lines))


async def _asked(request: Request, settings: Settings, can_ask: bool) -> Request:
    found = await found_agents(settings)
    command = "ask" if request.command == "ask" else "chat"
    terminal = Terminal()
    if can_ask and terminal.can_ask and not request.is_json:
        picked = await _picked(terminal, found, command)
        if picked is not None:
            return await _filled(terminal, picked, request)
    raise _none(found, command)


async def _picked(terminal: Terminal, found: list[FoundAgent], command: str) -> FoundAgent | None:
    commands = [command_of(each, command) for each in found]
    listed = agents_page(commands, [each.reason for each in found], is_numbered=True)
    page = f"No agent is chosen yet. Found here:\n{listed}"

    def meant(line: str) -> int | None:
        word = line.strip()
        if not word:
            return 0
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 4 else 0
        return number if 1 <= number <= len(found) else None

    number = await terminal.ask(page, _ASK, meant, again=_AGAIN.format(count=len(found)))
    return found[number - 1] if number else None


async def _filled(terminal: Terminal, picked: FoundAgent, request: Request) -> Request:
    flag, value = picked.flags[0], picked.flags[-1]
    if flag == DEMO.flags[0]:
        return _with(request, ("--runner", SCRIPTED))
    if picked.needs_model:
        provider = value.partition("/")[0]
        prompt = f"Which model of {printable(provider)}? "
        named = await terminal.ask("", prompt, lambda line: line.strip() or None, again=prompt)
        if named is None:
            raise _none([picked], request.command)
        value = f"{provider}/{named}"
    runner = "native" if flag == "--model" else value
    model = (("--model", value),) if flag == "--model" else ()
    return _with(request, ("--runner", runner), *model, (REMEMBER, "True"))


def _none(found: Sequence[FoundAgent], command: str) -> AgentNotChosen:
    return AgentNotChosen(
        commands=tuple(command_of(each, command) for each in found),
        reasons=tuple(each.reason for each in found),
    )


def _with(request: Request, *flags: tuple[str, str]) -> Request:
    return request._replace(given=tuple((dict(request.given) | dict(flags)).items()))
