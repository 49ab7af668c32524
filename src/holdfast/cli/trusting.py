"""Let the settings of a project count, once a person has seen them."""

from __future__ import annotations

from holdfast.app.config import PROJECT_FILE, content_of, project_file, project_values
from holdfast.app.failures import TrustUnconfirmed
from holdfast.app.settings import Settings
from holdfast.app.trust import Trust
from holdfast.cli.commands import Request
from holdfast.cli.configured import here_of
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain
from holdfast.nouns import printable, prose
from holdfast.world import SystemClock

_ASK = "May it count, as it is now? [y/n] "


def trust(request: Request, settings: Settings) -> Outcome:
    """Show a project's settings, and keep that they are agreed to if they are."""
    file = project_file(here_of(request))
    if file is None:
        return Outcome(hint=f"There is no {PROJECT_FILE} here, nor above.")
    content = content_of(file)
    project_values(file, content)  # what is wrong with it is said before anybody agrees
    kept, name = Trust(settings.state), printable(str(file))
    if kept.holds(file, content):
        return Outcome(hint=f"{name} is trusted already.")
    page = f"{name} says:\n\n{prose(content.decode())}\n"
    if request.has("--yes"):
        complain(page)
    elif not _agreed(page):
        raise TrustUnconfirmed(file=str(file))
    kept.give(file, content, SystemClock())
    return Outcome(hint=f"{name} counts from now on, until it changes.")


def _agreed(page: str) -> bool:
    from holdfast.cli.confirming import confirmed

    return confirmed(page, _ASK)
