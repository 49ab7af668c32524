"""Show what is settled, and by whom."""

from __future__ import annotations

from holdfast.app.settings import Settings
from holdfast.cli.commands import Request
from holdfast.cli.configured import config_of
from holdfast.cli.model import Outcome
from holdfast.cli.record_lines import json_line
from holdfast.nouns import printable

_UNTRUSTED = "{file} does not count: nobody has trusted it. Look at it, then: holdfast trust"


def show(request: Request, settings: Settings) -> Outcome:
    """Every setting, what counts of it, and who said so if that is asked."""
    config = config_of(request, settings)
    untrusted = None if config.untrusted is None else str(config.untrusted)
    if request.is_json:
        values = {
            key: {"value": each.value, "origin": each.origin}
            for key, each in config.settled.items()
        }
        record = {"schema": 1, "type": "config", "settings": values, "untrusted": untrusted}
        return Outcome(answer=json_line(record))
    widest = max(map(len, config.settled))
    lines = [
        f"{key:<{widest}}  {_shown(each.value)}"
        + (f"  ({printable(each.origin)})" if request.has("--origin") else "")
        for key, each in config.settled.items()
    ]
    hint = "" if untrusted is None else _UNTRUSTED.format(file=printable(untrusted))
    return Outcome(answer="".join(f"{line}\n" for line in lines), hint=hint)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return printable(str(value).lower() if isinstance(value, bool) else str(value))
