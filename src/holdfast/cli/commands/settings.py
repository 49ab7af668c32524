"""Enter the key of a provider: hidden on a terminal, or from standard input."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Final

import anyio

from holdfast.agent.failures import KeyUnusable, ProviderUnknown
from holdfast.app.config import PROJECT_FILE, content_of, project_file, project_values
from holdfast.app.failures import TrustUnconfirmed
from holdfast.app.settings import Settings, environment
from holdfast.app.trust import Trust
from holdfast.app.wiring.keys import key_file, providers_of
from holdfast.cli.declarations import Request
from holdfast.cli.failures import UsageWrong
from holdfast.cli.model import Outcome
from holdfast.cli.options import config_of, here_of
from holdfast.cli.output import complain, is_terminal, json_line
from holdfast.cli.terminal import Terminal, whole_input
from holdfast.nouns import printable, prose
from holdfast.world import SystemClock, SystemDisk, make_private, replace_file

_BYTES_MAX: Final = 4096
_READ_ON: Final = "holdfast login --help"


def login(request: Request, settings: Settings) -> Outcome:
    """Store a key in keys.toml, which only its owner can read."""
    providers = providers_of(settings)
    wanting = sorted(name for name, each in providers.items() if each.variable)
    name = request.argument
    if name is None:
        problem = f"name a provider: {', '.join(map(printable, wanting))}"
        raise UsageWrong(problem=problem, read_on=_READ_ON)
    name = name.partition("/")[0]
    if name not in providers:
        raise ProviderUnknown(provider=name, known=", ".join(wanting))
    if name not in wanting:
        return Outcome(hint=f"{printable(name)} needs no key.")
    file = key_file(settings)
    keep_key(file, name, _checked(name, _entered(name)))
    hint = f"The key of {printable(name)} is kept in {printable(str(file))}; only you can read it."
    variable = providers[name].variable
    if environment().get(variable):
        hint += f"\n{variable} is set, too, and is used instead of it."
    return Outcome(hint=hint)


def keep_key(file: Path, provider: str, key: str) -> None:
    """Replace the line of a provider in keys.toml, or add it; all other lines stay."""
    own = FileText.read(file)
    line = f"{_toml_key(provider)} = {json.dumps(key)}"
    kept = [each for each in own.lines if not own.is_about(each, provider)]
    make_private(file.parent)
    replace_file(SystemDisk(), file, ["".join(f"{each}\n" for each in [*kept, line]).encode()])


class FileText:
    """The lines of keys.toml; each that is about a provider holds its key alone."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    @classmethod
    def read(cls, file: Path) -> FileText:
        """Read the file; one that others can read, or that is not valid, is refused."""
        from holdfast.agent import FileKeys

        FileKeys(file).check()
        return cls(file.read_text(encoding="utf-8").splitlines() if file.exists() else [])

    @staticmethod
    def is_about(line: str, provider: str) -> bool:
        """Whether a line sets the key of this provider."""
        try:
            return provider in tomllib.loads(line)
        except tomllib.TOMLDecodeError:
            return False


def _entered(provider: str) -> str:
    if not is_terminal(sys.stdin):
        return whole_input(_BYTES_MAX + 1).strip()
    return anyio.run(_asked, provider) or ""


async def _asked(provider: str) -> str | None:
    prompt = f"Key of {printable(provider)} (it is not shown; Enter alone leaves): "
    key = await Terminal().ask("", prompt, lambda line: line.strip(), is_secret=True)
    sys.stderr.write("\n")  # the end of the line was not shown either
    return key


def _checked(provider: str, key: str) -> str:
    if not key:
        raise KeyUnusable(provider=provider, reason="nothing was entered")
    if len(key) > _BYTES_MAX:
        raise KeyUnusable(provider=provider, reason=f"it is longer than {_BYTES_MAX} characters")
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise KeyUnusable(provider=provider, reason="it has blanks or letters that no key has")
    return key


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


# Let the settings of a project count, once a person has seen them.

_ASK = "May it count, as it is now? [y/n] "


def trust(request: Request, settings: Settings) -> Outcome:
    """Show a project's settings, and keep that they are agreed to if they are."""
    file = project_file(here_of(request))
    if file is None:
        return Outcome(hint=f"There is no {PROJECT_FILE} here, nor above.")
    content = content_of(file)
    project_values(file, content)  # report errors before asking for trust
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
    from holdfast.cli.terminal import confirmed

    return confirmed(page, _ASK)


_UNTRUSTED = "{file} is ignored, because you have not trusted it. Review it with: holdfast trust"


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
