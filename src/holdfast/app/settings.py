"""Settings from the environment; the only module that reads it.

Directories follow the XDG rules, one directory each for state, configuration, cache and sockets;
`HOLDFAST_HOME` puts all four below one directory instead.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.app.failures import SettingInvalid

_PREFIX = "HOLDFAST_"
_CLAIMS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Directories, programs and verbosity."""

    state: Path
    config: Path
    cache: Path
    runtime: Path
    codex: str = "codex"
    debug: bool = False
    colourless: bool = False
    preload: str = ""
    unknown: tuple[str, ...] = ()


def load() -> Settings:
    """Parse the environment of this process; raises SettingInvalid."""
    return parse(os.environ, person=home_of_person())


def home_of_person() -> Path:
    """The home directory of the user; `/` for a user without an entry in passwd."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def environment() -> dict[str, str]:
    """A copy of the environment, for child processes."""
    return dict(os.environ)


def parse(environ: Mapping[str, str], *, person: Path) -> Settings:
    """Parse an environment; `person` is the home directory of the user."""
    home = _directory(environ, "HOLDFAST_HOME")
    state = home / "state" if home else _xdg(environ, "XDG_STATE_HOME", person / ".local/state")
    return Settings(
        state=state,
        config=home / "config" if home else _xdg(environ, "XDG_CONFIG_HOME", person / ".config"),
        cache=home / "cache" if home else _xdg(environ, "XDG_CACHE_HOME", person / ".cache"),
        runtime=home / "run" if home else _runtime(environ, state),
        codex=environ.get("HOLDFAST_CODEX") or "codex",
        debug=_claim(environ, "HOLDFAST_DEBUG"),
        colourless=bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb",
        preload=environ.get("LD_PRELOAD", ""),
        unknown=tuple(sorted(name for name in environ if _is_unknown(name))),
    )


KNOWN = (
    "HOLDFAST_HOME",
    "HOLDFAST_CODEX",
    "HOLDFAST_DEBUG",
    "HOLDFAST_RUNNER",
    "HOLDFAST_MODEL",
    "HOLDFAST_EFFORT",
    "HOLDFAST_COLOR",
    "HOLDFAST_PLAIN",
    "HOLDFAST_PUBLISH_IGNORED",
    "HOLDFAST_NOTIFY",
    "HOLDFAST_BUDGET_STEPS",
    "HOLDFAST_BUDGET_TOKENS",
    "HOLDFAST_BUDGET_COST_USD",
    "HOLDFAST_BUDGET_SECONDS",
    "HOLDFAST_WAIT_FIRST_BYTE",
    "HOLDFAST_WAIT_BETWEEN_CHUNKS",
    "HOLDFAST_WAIT_ATTEMPTS",
)


def _is_unknown(name: str) -> bool:
    return name.startswith(_PREFIX) and name not in KNOWN


def _directory(environ: Mapping[str, str], name: str) -> Path | None:
    value = environ.get(name, "")
    if value and not Path(value).is_absolute():
        raise SettingInvalid(variable=name, value=value, allowed="an absolute path")
    return Path(value) if value else None


def _xdg(environ: Mapping[str, str], name: str, otherwise: Path) -> Path:
    """The XDG rules ask that a relative path be ignored."""
    value = Path(environ.get(name, ""))
    return (value if value.is_absolute() else otherwise) / "holdfast"


def _runtime(environ: Mapping[str, str], state: Path) -> Path:
    value = Path(environ.get("XDG_RUNTIME_DIR", ""))
    return value / "holdfast" if value.is_absolute() else state / "run"


def _claim(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "")
    if value.lower() not in _CLAIMS:
        raise SettingInvalid(variable=name, value=value, allowed="1, true, yes, 0, false or no")
    return _CLAIMS[value.lower()]
