"""Decide which variables a process gets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate

from holdfast.exec.failures import RequestInvalid
from holdfast.exec.wire import EnvPolicy

CORE = frozenset(
    {
        "PATH",
        "SHELL",
        "TMPDIR",
        "TEMP",
        "TMP",
        "HOME",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "LOGNAME",
        "USER",
    }
)
NEVER = frozenset(
    {
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "NODE_REPL_AUTH_TOKEN",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        "CODEX_EXEC_SERVER_EXIT_ON_STDIN_CLOSE",
        "HOLDFAST_SERVICE",  # of our own services: what has it is not ended with its starter
    }
)
_SECRETS = ("*KEY*", "*SECRET*", "*TOKEN*")
_INHERITED = {"all", "core", "none"}


def environment(
    policy: EnvPolicy | None, *, own: Mapping[str, str], asked: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a process: what the policy lets through of ours, then what was asked.

    Without a policy it is exactly what was asked. Some variables never reach a process.
    """
    chosen = {} if policy is None else _inherited(policy, own)
    chosen.update(asked)
    return {name: value for name, value in chosen.items() if name not in NEVER}


def _inherited(policy: EnvPolicy, own: Mapping[str, str]) -> dict[str, str]:
    chosen = _beginning(policy.inherit, own)
    if not policy.ignore_default_excludes:
        chosen = _without(chosen, _SECRETS)
    chosen = _without(chosen, policy.exclude)
    chosen.update(policy.set)
    if policy.include_only:
        chosen = {n: value for n, value in chosen.items() if _matches(n, policy.include_only)}
    return chosen


def _beginning(inherit: str, own: Mapping[str, str]) -> dict[str, str]:
    if inherit not in _INHERITED:
        raise RequestInvalid(
            reason=f"unknown variant `{inherit}`, expected one of `all`, `core`, `none`"
        )
    if inherit == "none":
        return {}
    return {name: value for name, value in own.items() if inherit == "all" or name in CORE}


def _without(variables: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    gone = tuple(patterns)
    return {name: value for name, value in variables.items() if not _matches(name, gone)}


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(_pattern(pattern).fullmatch(name) for pattern in patterns)


def _pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of names: `*` is anything, `?` any one character, case does not matter."""
    # Of several ways to match, one is tried: whoever asks could keep us busy for ever otherwise.
    return re.compile(translate(pattern.replace("[", "[[]")), re.IGNORECASE)
