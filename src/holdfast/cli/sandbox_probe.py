"""Try to break out of the sandbox that is made here, and show what became of it."""

from __future__ import annotations

import json
import sys

from holdfast.app.settings import Settings
from holdfast.cli.appearance import look_for
from holdfast.cli.commands import Request
from holdfast.cli.core.probe_page import ESCAPED, Tried, probe_page, probe_record
from holdfast.cli.model import Outcome
from holdfast.cli.output import complain, is_terminal
from holdfast.cli.sandbox_order import kept_in
from holdfast.confine.preflight import preflight
from holdfast.confine.probes.probing import probe

_CLEAR = "\r\x1b[K"


def sandbox_probe(request: Request, settings: Settings) -> Outcome:
    """Try every way out; the status is 1 if one of them led out."""
    shows = is_terminal(sys.stderr) and not settings.colourless
    if shows:
        complain("trying to break out ...")
    try:
        found = probe(state=kept_in(settings))
    finally:
        if shows:
            complain(_CLEAR)
    strength = preflight().strength or "none"
    tried = [Tried(each.name, each.tries, each.verdict, each.why) for each in found]
    status = 1 if any(each.verdict == ESCAPED for each in tried) else 0
    if request.is_json:
        return Outcome(status=status, answer=json.dumps(probe_record(tried, strength)) + "\n")
    look = look_for(sys.stdout, request, settings)
    return Outcome(status=status, answer=probe_page(tried, strength, look))
