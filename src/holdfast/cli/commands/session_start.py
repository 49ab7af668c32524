"""Begin or continue a session for a request, with the consent of the user."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from holdfast.app.config_rules import LIMITS
from holdfast.app.failures import SessionOptionsInvalid
from holdfast.app.sessions import KeptSession, Sessions, runnable
from holdfast.app.settings import Settings
from holdfast.app.wiring.consent import provider_of, record_consent, require_provider_consent
from holdfast.app.wiring.session import (
    begin_session,
    check_model,
    check_options,
    check_project,
    is_text,
)
from holdfast.cli.commands.agent_choice import REMEMBER, remember
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.project import at_work
from holdfast.cli.terminal import confirmed
from holdfast.workbench import Workbench
from holdfast.workbench.failures import ConsentRequired

_ASK: Final = "Do you agree? [y/n] "
_PAGE: Final = """\
{provider} sends the files it reads in this project to its model:
  {project}
That may be all of them. If you agree, your answer is recorded, and you are
not asked again for this project.
"""


def session_for(title: str, request: Request, settings: Settings) -> KeptSession:
    """The session that `--session` names, or a new one with this title."""
    named = request.value("--session")
    if named is None:
        return new_session(title, request, settings)
    return resumed_session(Sessions(settings).find(named), request, settings)


def resumed_session(session: KeptSession, request: Request, settings: Settings) -> KeptSession:
    """The same session, once its provider has consent; asks for it or raises ConsentRequired."""
    runnable(session)
    about = Request(
        request.command, given=(("--project", session.project),), is_json=request.is_json
    )
    with at_work(about, settings) as project:
        options = {**session.options, **_options(request)}
        ensure_consent(project.workbench, provider_of(session.runner, options), request)
    return session


def new_session(
    title: str, request: Request, settings: Settings, *, asks_later: bool = False
) -> KeptSession:
    """Begin a session in the draft that the request names, or in a new one.

    With `asks_later` the session begins without consent, and the host asks before the first turn
    that would send something.
    """
    runner = request.value("--runner")
    assert runner is not None, "with_agent() has chosen one"
    options = _options(request)
    try:
        _check(runner, options, request, settings)
    except SessionOptionsInvalid as failure:
        read_on = f"holdfast {request.command} --help"
        raise UsageWrong(problem=failure.problem, read_on=read_on) from None
    with at_work(request, settings) as project:
        check_project(project.workbench)  # before the user is asked for consent in vain
        if not asks_later or request.has("--consent"):
            ensure_consent(project.workbench, provider_of(runner, options), request)
        made = begin_session(
            project.workbench,
            settings,
            runner=runner,
            options=options,
            title=title,
            draft=request.value("--draft"),
        )
    remember(request, settings)
    return made


def ensure_consent(workbench: Workbench, provider: str | None, request: Request) -> None:
    """Return if consent is not needed or given; otherwise ask for it, or raise ConsentRequired."""
    try:
        require_provider_consent(workbench, provider)
    except ConsentRequired:
        assert provider is not None, "without a provider no consent is required"
        page = _PAGE.format(provider=provider, project=workbench.project)
        if not request.has("--consent") and (request.is_json or not confirmed(page, _ASK)):
            raise
        record_consent(workbench, provider, is_given=True)


def _check(runner: str, options: Mapping[str, str], request: Request, settings: Settings) -> None:
    check_options(runner, options)
    # A model that cannot be used must not become the remembered choice.
    if runner == "native" and "scenario" not in options and request.has(REMEMBER):
        check_model(options["model"], settings)


def _options(request: Request) -> dict[str, str]:
    """Options for the runner: model, effort, scenario and limits."""
    found = {name: request.value(f"--{name}") for name in ("model", "effort", "scenario")}
    if found["scenario"] is not None:
        # Relative to the user's directory, which the host does not share.
        found["scenario"] = os.path.abspath(found["scenario"])
    for name, value in found.items():
        if value is not None and not is_text(value):
            read_on = f"holdfast {request.command} --help"
            raise UsageWrong(problem=f"the value of --{name} is not UTF-8 text", read_on=read_on)
    limits = {flag: value for flag, value in request.given if flag.startswith(LIMITS)}
    return limits | {name: value for name, value in found.items() if value is not None}
