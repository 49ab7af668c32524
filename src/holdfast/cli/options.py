"""Have a request mean what a person has settled, where it does not say otherwise itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from holdfast.app.config import Config, read_config
from holdfast.app.config_rules import LIMITS, Value, value_of
from holdfast.app.failures import SettingInvalid
from holdfast.app.settings import Settings
from holdfast.cli.declarations import Request
from holdfast.cli.output import complain
from holdfast.nouns import printable
from holdfast.workbench.failures import ProjectRefused

_FLAGS: Final = ("runner", "model")  # keys that are also flags with a value
GOING_ON: Final = ("--session", "--resume", "--continue")  # a session stays as it was begun
_UNTRUSTED: Final = "({file} is ignored until you trust it: holdfast trust)\n"


def configured(request: Request, settings: Settings) -> Request:
    """The same request, with what is settled and it does not say itself."""
    config = config_of(request, settings)
    if config.untrusted is not None:
        complain(_UNTRUSTED.format(file=printable(str(config.untrusted))))
    counting = {key: each.value for key, each in config.settled.items() if each.value is not None}
    given = dict(request.given)
    if request.command == "chat":
        given |= _calling(counting)
        given |= {"--plain": "True"} if counting["plain"] is True else {}
    if not any(map(request.has, GOING_ON)):
        given |= _settled_flags(request, config)
        given |= _chosen_now(request, config)
        given |= {key: str(value) for key, value in counting.items() if key.startswith(LIMITS)}
    return request._replace(given=tuple(given.items()), colour=str(counting["color"]))


def chosen_for(request: Request) -> dict[str, str]:
    """How turns are to be taken, where that is not how the session takes them anyway."""
    if not any(map(request.has, GOING_ON)):
        return {}
    found = {name: request.value(f"--{name}") for name in ("model", "effort")}
    return {name: value for name, value in found.items() if value is not None}


def config_of(request: Request, settings: Settings) -> Config:
    """What is settled for a request, its own flags first."""
    flags: dict[str, Value] = {
        key: value for key in _FLAGS if (value := request.value(f"--{key}")) is not None
    }
    if request.colour != "auto":
        flags["color"] = request.colour
    if request.has("--plain"):
        flags["plain"] = True
    for key in ("notify", "effort"):
        said = request.value(f"--{key}")
        if said is not None:
            flags[key] = value_of(key, said, where=f"--{key}")
    return read_config(settings, here_of(request), flags)


def here_of(request: Request) -> Path:
    """Where the person is, or says that they are."""
    try:
        return Path(request.value("--project") or Path.cwd())
    except OSError as error:
        raise ProjectRefused(path=".", reason=error.strerror or str(error)) from error


def _calling(counting: Mapping[str, Value]) -> dict[str, str]:
    """How a person is called, who may have settled a command for it."""
    ways, command = str(counting["notify"]), counting.get("notify_command")
    if "command" in ways.split(",") and command is None:
        allowed = "something else as long as config.toml has no notify_command"
        raise SettingInvalid(variable="notify", value=ways, allowed=allowed)
    return {"notify": ways} | ({} if command is None else {"notify_command": str(command)})


def _settled_flags(request: Request, config: Config) -> dict[str, str]:
    """Flags that settings stand for; a model is settled for the settled runner and no other."""
    is_named = request.has("--runner") or request.has("--demo")
    wanted = [] if is_named else ["runner", "model"]
    if "/" in (request.value("--model") or ""):
        wanted = []
    if config.settled["runner"].value == "native":
        wanted.append("effort")
    found = {
        f"--{key}": str(config.settled[key].value)
        for key in wanted
        if not request.has(f"--{key}") and config.settled[key].origin != "default"
    }
    model = found.get("--model") or request.value("--model") or ""
    if not is_named and "--runner" not in found and "/" in model:
        found["--runner"] = "native"
    return found


def _chosen_now(request: Request, config: Config) -> dict[str, str]:
    """Mark a choice on the command line to be remembered, unless settings decide anyway."""
    is_said = request.has("--runner") or "/" in (request.value("--model") or "")
    is_settled = bool(config.beneath & {"runner", "model"})
    return {"remember": "True"} if is_said and not is_settled else {}
