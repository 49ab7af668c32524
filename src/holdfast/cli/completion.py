"""Print what a shell or `man` is to load."""

from __future__ import annotations

from holdfast import __version__
from holdfast.app.settings import Settings
from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.commands import Request
from holdfast.cli.completion_scripts import SHELLS, manual, script
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome


def completion(request: Request, _: Settings) -> Outcome:
    """Print a script that lets a shell complete our command line."""
    if request.argument not in SHELLS:
        raise UsageWrong(
            problem=f"say which shell: {', '.join(SHELLS)}", read_on="holdfast completion --help"
        )
    return Outcome(answer=script(request.argument, COMMANDS, (*TOP, *COMMON)))


def man(_: Request, __: Settings) -> Outcome:
    """Print the page of the manual."""
    return Outcome(answer=manual(COMMANDS, (*TOP, *COMMON), GUIDE, __version__))
