"""Begin a session: check its options, give it a draft, and store it."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.app.config_rules import value_of
from holdfast.app.failures import SessionOptionsInvalid
from holdfast.app.sessions import RUNNERS, TITLE_MOST, KeptSession, Sessions
from holdfast.app.settings import Settings
from holdfast.runners.failures import RunnerUnknown
from holdfast.workbench import Workbench, open_draft
from holdfast.workbench.failures import ProjectRefused


def begin_session(
    workbench: Workbench,
    settings: Settings,
    *,
    runner: str,
    options: Mapping[str, str],
    title: str = "",
    draft: str | None = None,
) -> KeptSession:
    """Store a new session in the named draft, or in a new one.

    The caller has checked consent, or checks it before the first turn: nothing is sent here.
    Raises RunnerUnknown, SessionOptionsInvalid, SettingInvalid or ProjectRefused.
    """
    check_options(runner, options)
    check_project(workbench)
    if draft is None:
        draft = open_draft(workbench).id
    else:
        with workbench.locked() as (handle, _):
            draft = handle.drafts.find(draft).id
    return Sessions(settings).make(
        str(workbench.project),
        draft,
        runner,
        title=title.strip()[:TITLE_MOST],
        options=dict(options),
    )


def check_options(runner: str, options: Mapping[str, str]) -> None:
    """Raise RunnerUnknown, SettingInvalid or SessionOptionsInvalid if a session cannot begin so."""
    if runner not in RUNNERS:
        raise RunnerUnknown(runner=runner, known=", ".join(RUNNERS))
    if "effort" in options:
        value_of("effort", options["effort"], where="--effort")
        if runner != "native":
            problem = f"--effort works with the runner native only, not with {runner}"
            raise SessionOptionsInvalid(problem=problem)
    if runner == "native" and "scenario" not in options and "/" not in options.get("model", ""):
        raise SessionOptionsInvalid(problem="Missing --model: write it as PROVIDER/MODEL")


def check_model(model: str, settings: Settings) -> None:
    """Raise SessionOptionsInvalid or ProviderUnknown if no request can be sent to this model."""
    from holdfast.agent.failures import ProviderUnknown
    from holdfast.app.wiring.keys import providers_of

    provider, _, name = model.partition("/")
    if not provider or not name or model.split() != [model]:
        raise SessionOptionsInvalid(problem=f"--model {model}: write PROVIDER/MODEL")
    known = providers_of(settings)
    if provider not in known:
        raise ProviderUnknown(provider=provider, known=", ".join(sorted(known)))


def check_project(workbench: Workbench) -> None:
    """Raise ProjectRefused if the path is not UTF-8: journals and agents carry it as JSON text."""
    path = str(workbench.project)
    if not is_text(path):
        raise ProjectRefused(path=path, reason="its path is not UTF-8 text")


def is_text(word: str) -> bool:
    """Whether a string from the command line or the file system encodes to UTF-8."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
