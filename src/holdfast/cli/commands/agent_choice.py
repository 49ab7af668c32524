"""The agent for a new session: named, remembered, or chosen by the user at a prompt.

The first match wins: flags, settings (environment and config.toml), the sample project (scripted
agent), the last choice. Otherwise the user is asked; without a terminal the session does not begin.
Outside the sample project the scripted agent starts only on request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from holdfast.app.settings import Settings
from holdfast.app.wiring.agent_choice import (
    DEMO,
    SCRIPTED,
    AgentChoices,
    ChosenAgent,
    FoundAgent,
    default_agent,
    found_agents,
)
from holdfast.cli.declarations import Request
from holdfast.cli.failures import AgentNotChosen, UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.options import GOING_ON, here_of
from holdfast.cli.output import complain
from holdfast.cli.render.agents import agents_page, start_command
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.terminal import Terminal
from holdfast.nouns import printable

REMEMBER: Final = "remember"  # marks a request whose agent the user chose just now
_ASK: Final = "Which one? Type its number, or press Enter to leave: "
_AGAIN: Final = "Choose 1 to {count}, or Enter to leave: "
_REMEMBERED: Final = (
    "(Holdfast uses {agent} from now on. Choose another one with --model or --runner.)\n"
)


def with_agent(request: Request, settings: Settings, *, can_ask: bool = True) -> Request:
    """The same request with `--runner` and `--model` filled in; raises AgentNotChosen.

    `request` must come from `configured()`, which adds the flags that settings imply.
    """
    if any(map(request.has, GOING_ON)) or request.has("--runner"):
        return request
    model = request.value("--model")
    if request.has("--demo") or request.has("--scenario"):
        return _with(request, ("--runner", SCRIPTED))
    if model is not None:  # PROVIDER/MODEL would have implied the runner native
        problem = f"--model {model}: write PROVIDER/MODEL, or name the agent with --runner"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    chosen = default_agent(settings, here_of(request))
    if chosen is not None:
        model_flag = (("--model", chosen.model),) if chosen.model else ()
        return _with(request, ("--runner", chosen.runner), *model_flag)
    return anyio.run(_asked, request, settings, can_ask)


def remember(request: Request, settings: Settings) -> None:
    """Store the agent of a session that has begun, if the user chose it on the command line."""
    runner, model = request.value("--runner"), request.value("--model") or ""
    is_real = runner not in {None, SCRIPTED} and not request.has("--scenario")
    if runner is None or not is_real or not request.has(REMEMBER):
        return
    if AgentChoices(settings.state).remember(ChosenAgent(runner, model)) and not request.is_json:
        agent = f"{runner} with {printable(model)}" if model else runner
        complain(_REMEMBERED.format(agent=agent))


def not_chosen(failure: AgentNotChosen, look: Look) -> Outcome:
    """The page for a user without an agent: each agent that was found, with its command."""
    sign = look.paint(look.signs.bad, Tone.BAD)
    lines = [
        f"{sign} {look.paint(failure.title, Tone.STRONG)}",
        "  Nothing was sent. Start one of these; Holdfast remembers your choice, except the demo:",
        agents_page(failure.commands, failure.reasons).rstrip("\n"),
        "  To enter a provider's key: holdfast login PROVIDER",
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
    commands = [start_command(each.runner, each.model, command) for each in found]
    listed = agents_page(commands, [each.reason for each in found], is_numbered=True)
    page = f"No agent is chosen yet. Found here:\n{listed}"

    def parsed(line: str) -> int | None:
        word = line.strip()
        if not word:
            return 0
        number = int(word) if word.isascii() and word.isdigit() and len(word) < 4 else 0
        return number if 1 <= number <= len(found) else None

    number = await terminal.ask(page, _ASK, parsed, again=_AGAIN.format(count=len(found)))
    return found[number - 1] if number else None


async def _filled(terminal: Terminal, picked: FoundAgent, request: Request) -> Request:
    model = picked.model
    if picked.needs_model:
        provider = model.partition("/")[0]
        prompt = f"Which model of {printable(provider)}? "
        named = await terminal.ask("", prompt, lambda line: line.strip() or None, again=prompt)
        if named is None:
            raise _none([picked], request.command)
        model = f"{provider}/{named}"
    if picked == DEMO:
        return _with(request, ("--runner", SCRIPTED))  # a demo is never remembered
    flags = (("--model", model),) if model else ()
    return _with(request, ("--runner", picked.runner), *flags, (REMEMBER, "True"))


def _none(found: Sequence[FoundAgent], command: str) -> AgentNotChosen:
    return AgentNotChosen(
        commands=tuple(start_command(each.runner, each.model, command) for each in found),
        reasons=tuple(each.reason for each in found),
    )


def _with(request: Request, *flags: tuple[str, str]) -> Request:
    return request._replace(given=tuple((dict(request.given) | dict(flags)).items()))
