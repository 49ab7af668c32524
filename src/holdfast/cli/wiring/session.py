"""Begin a session about a project, in a draft, with a runner that the person has agreed to."""

from __future__ import annotations

import os

from holdfast.app.config_rules import LIMITS, value_of
from holdfast.app.sessions import RUNNERS, TITLE_MOST, KeptSession, Sessions, runnable
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.project import at_work
from holdfast.cli.wiring.agent_choice import REMEMBER, remember
from holdfast.cli.wiring.consent import agree, provider_of
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import open_draft
from holdfast.workbench.failures import ProjectRefused


def session_for(title: str, request: Request, settings: Settings) -> KeptSession:
    """The session that a request means, or a new one of this title."""
    named = request.value("--session")
    if named is None:
        return begin_session(title, request, settings)
    return taken_up(Sessions(settings).find(named), request, settings)


def taken_up(session: KeptSession, request: Request, settings: Settings) -> KeptSession:
    """A session that is to go on; the person has agreed to its runner."""
    runnable(session)
    there = Request(
        request.command, given=(("--project", session.project),), is_json=request.is_json
    )
    with at_work(there, settings) as project:
        meant = {**session.options, **_options(request)}
        agree(project.workbench, provider_of(session.runner, meant), request)
    return session


def begin_session(
    title: str, request: Request, settings: Settings, *, asks_later: bool = False
) -> KeptSession:
    """A new session in a draft, a new one unless one is named.

    Who asks later for consent lets the session begin without: nothing is sent before there is one.
    """
    runner = request.value("--runner")
    assert runner is not None, "with_agent() has chosen one"
    if runner not in RUNNERS:
        raise RunnerUnknown(runner=runner, known=", ".join(RUNNERS))
    options = _options(request)
    if "effort" in options:
        value_of("effort", options["effort"], where="--effort")
        if runner != "native":
            problem = f"{runner} is not told an --effort, only native is"
            raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    if runner == "native" and "scenario" not in options and "/" not in options.get("model", ""):
        read_on = f"holdfast {request.command} --help"
        raise UsageWrong(problem="say which --model, as PROVIDER/MODEL", read_on=read_on)
    if runner == "native" and "scenario" not in options and request.has(REMEMBER):
        _check_model(options["model"], request, settings)
    with at_work(request, settings) as project:
        where = str(project.workbench.project)
        if not _is_text(where):
            reason = "agents are told its path, and that is no text (UTF-8)"
            raise ProjectRefused(path=where, reason=reason)
        if not asks_later or request.has("--consent"):
            agree(project.workbench, provider_of(runner, options), request)
        draft = request.value("--draft")
        if draft is None:
            draft = open_draft(project.workbench).id
        else:
            with project.workbench.locked() as (handle, _):
                draft = handle.drafts.find(draft).id
    made = Sessions(settings).make(
        where, draft, runner, title=title.strip()[:TITLE_MOST], options=options
    )
    remember(request, settings)
    return made


def _check_model(name: str, request: Request, settings: Settings) -> None:
    """Refuse a model that cannot be asked, before it is remembered as the person's choice."""
    from holdfast.agent.failures import ProviderUnknown
    from holdfast.cli.wiring.keys import providers_of

    provider, _, model = name.partition("/")
    if not provider or not model or name.split() != [name]:
        problem = f"--model {name}: write PROVIDER/MODEL"
        raise UsageWrong(problem=problem, read_on=f"holdfast {request.command} --help")
    known = providers_of(settings)
    if provider not in known:
        raise ProviderUnknown(provider=provider, known=", ".join(sorted(known)))


def _is_text(word: str) -> bool:
    """Whether a word of the command line, or of the disk, can be written down as text."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _options(request: Request) -> dict[str, str]:
    """What the runner is told; a script is meant from where the person is."""
    found = {name: request.value(f"--{name}") for name in ("model", "effort", "scenario")}
    if found["scenario"] is not None:
        found["scenario"] = os.path.abspath(found["scenario"])
    for name, value in found.items():
        if value is not None and not _is_text(value):
            read_on = f"holdfast {request.command} --help"
            raise UsageWrong(problem=f"what --{name} says is no text (UTF-8)", read_on=read_on)
    budgets = {flag: value for flag, value in request.given if flag.startswith(LIMITS)}
    return budgets | {name: value for name, value in found.items() if value is not None}
