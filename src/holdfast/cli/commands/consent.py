"""See, give and withdraw the consent that something of a project may go to a provider."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from holdfast.app.settings import Settings
from holdfast.app.wiring.consent import consent_history, record_consent
from holdfast.cli.commands.session_start import ensure_consent
from holdfast.cli.declarations import Request
from holdfast.cli.model import Outcome
from holdfast.cli.output import json_line, look_for
from holdfast.cli.project import at_work, refuse
from holdfast.cli.render.drafts import SCHEMA, iso
from holdfast.cli.render.style import Look, Tone
from holdfast.cli.render.table import age
from holdfast.nouns import printable
from holdfast.workbench import Consent, Workbench, in_force

_NO_CONSENT = "No provider may see this project; you are asked before anything is sent."
_REVOKED = (
    "From now on nothing of this project is sent to {}. What was sent before cannot be recalled."
)


def consent(request: Request, settings: Settings) -> Outcome:
    """List, give or revoke consent, and print the consents in force."""
    hint = ""
    with at_work(request, settings) as project:
        match request.words:
            case () | ("list",):
                pass
            case ("give", word) if provider := _provider(word):
                flags = (("--consent", "True"),) if request.has("--yes") else ()
                ensure_consent(project.workbench, provider, request._replace(given=flags))
            case ("revoke", word) if provider := _provider(word):
                hint = _revoked(project.workbench, provider)
            case _:
                refuse("expected: list, give PROVIDER or revoke PROVIDER", request)
        holding = in_force(consent_history(project.workbench))
    if request.is_json:
        return Outcome(answer="".join(json_line(_record(each)) for each in holding))
    look = look_for(sys.stdout, request, settings)
    return Outcome(answer=_page(holding, look), hint=hint or ("" if holding else _NO_CONSENT))


def _provider(word: str) -> str:
    """The provider of PROVIDER or PROVIDER/MODEL; empty if it is not printable."""
    name = word.partition("/")[0]
    return name if name.isprintable() else ""


def _revoked(workbench: Workbench, provider: str) -> str:
    if all(each.provider != provider for each in in_force(consent_history(workbench))):
        return f"You have not agreed to {printable(provider)}."
    record_consent(workbench, provider, is_given=False)
    return _REVOKED.format(printable(provider))


def _page(consents: Sequence[Consent], look: Look) -> str:
    """One line per consent: provider, scope and age."""
    names = [printable(each.provider) for each in consents]
    widest = max(map(len, names), default=0)
    lines: list[str] = []
    for name, each in zip(names, consents, strict=True):
        when = look.paint(age(each.at_ms / 1000, now=time.time()), Tone.QUIET)
        lines.append(f"{name:<{widest}}  {printable(str(each.scope))}  {when}\n")
    return "".join(lines)


def _record(consent: Consent) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "type": "consent",
        "project": consent.project,
        "provider": consent.provider,
        "given": consent.is_given,
        "at": iso(consent.at_ms),
        "paths": [str(path) for path in consent.scope.paths],
        "session": consent.session,
    }
