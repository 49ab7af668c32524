"""Print what a shell or `man` is to load."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile

from holdfast import __version__
from holdfast.app.settings import Settings, environment
from holdfast.cli.catalogue import COMMANDS, COMMON, GUIDE, TOP
from holdfast.cli.commands import Request
from holdfast.cli.completion_scripts import SHELLS, manual, script
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.output import DUMB, is_terminal


def completion(request: Request, _: Settings) -> Outcome:
    """Print a script that lets a shell complete our command line."""
    if request.argument not in SHELLS:
        raise UsageWrong(
            problem=f"say which shell: {', '.join(SHELLS)}", read_on="holdfast completion --help"
        )
    return Outcome(answer=script(request.argument, COMMANDS, (*TOP, *COMMON)))


def man(request: Request, _: Settings) -> Outcome:
    """Show the page of the manual on a terminal by `man`, and else print its source."""
    page = manual(COMMANDS, (*TOP, *COMMON), GUIDE, __version__)
    program = shutil.which("man")
    if request.has("--roff") or program is None or not is_terminal(sys.stdout):
        return Outcome(answer=page)
    with tempfile.NamedTemporaryFile("w", suffix=".1", encoding="utf-8") as file:
        file.write(page)
        file.flush()
        line = [program, "-l", file.name]
        if environment().get("TERM") not in DUMB:
            return Outcome(status=subprocess.run(line, check=False).returncode)
        # A pager would write escape sequences; on a pipe `man` writes plain lines.
        ended = subprocess.run(line, stdout=subprocess.PIPE, check=False)
        return Outcome(status=ended.returncode, answer=ended.stdout.decode(errors="replace"))
