"""Options of threads and turns, and the parameters that they become.

Only an option that was given, and is not None, replaces what `more` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict, TypeVar

import msgspec

from holdfast.codex.failures import OptionInvalid
from holdfast.codex.wire.generated import (
    AskForApproval,
    DangerFullAccessSandboxPolicy,
    ReadOnlySandboxPolicy,
    ReasoningSummary,
    SandboxMode,
    SandboxPolicy,
    TextUserInput,
    ThreadForkParams,
    ThreadResumeParams,
    ThreadStartParams,
    TurnStartParams,
    UserInput,
    WorkspaceWriteSandboxPolicy,
)

Prompt = str | Sequence[UserInput]
P = TypeVar("P", ThreadStartParams, ThreadResumeParams, ThreadForkParams)

_POLICIES: dict[str, SandboxPolicy] = {
    "read-only": ReadOnlySandboxPolicy(),
    "workspace-write": WorkspaceWriteSandboxPolicy(),
    "danger-full-access": DangerFullAccessSandboxPolicy(),
}


class PathLike(Protocol):
    """A path that is not a text, such as `pathlib.Path`."""

    def __fspath__(self) -> str: ...


class ThreadOptions(TypedDict, total=False):
    """What a thread is started, resumed or forked with; the settings of Codex apply otherwise."""

    cwd: str | PathLike | None
    approval_policy: AskForApproval | None
    sandbox: SandboxMode | None
    model: str | None


class TurnOptions(TypedDict, total=False):
    """What one turn is run with. Codex keeps all but `output_schema` for later turns of the thread.

    `sandbox` is a mode, or a whole policy; a mode here knows nothing of what the settings of Codex
    add to it, such as writable roots. `more` holds any other parameter of `turn/start`; its
    thread and input are replaced.
    """

    model: str | None
    effort: str | None
    summary: ReasoningSummary | None
    output_schema: Mapping[str, object] | None
    sandbox: SandboxMode | SandboxPolicy | None
    approval_policy: AskForApproval | None
    cwd: str | PathLike | None
    more: TurnStartParams | None


def thread_params(base: P, options: ThreadOptions) -> P:
    """Put options into the parameters of a request about a thread."""
    given: dict[str, object] = {k: v for k, v in options.items() if v is not None}
    if (cwd := options.get("cwd")) is not None:
        given["cwd"] = cwd if isinstance(cwd, str) else cwd.__fspath__()
    return msgspec.structs.replace(base, **given)


def turn_params(thread: str, prompt: Prompt, options: TurnOptions) -> TurnStartParams:
    """Write the parameters of a turn; raises `OptionInvalid` for an unknown sandbox mode."""
    given: dict[str, object] = {k: v for k, v in options.items() if v is not None}
    for special in {"more", "sandbox"} & given.keys():
        del given[special]
    if (cwd := options.get("cwd")) is not None:
        given["cwd"] = cwd if isinstance(cwd, str) else cwd.__fspath__()
    if (sandbox := options.get("sandbox")) is not None:
        given["sandbox_policy"] = _policy(sandbox)
    if (schema := options.get("output_schema")) is not None:
        given["output_schema"] = dict(schema)
    words = user_input(prompt)
    base = options.get("more") or TurnStartParams(thread, words)
    return msgspec.structs.replace(base, thread_id=thread, input=words, **given)


def user_input(prompt: Prompt) -> tuple[UserInput, ...]:
    """A prompt as the protocol has it."""
    return (TextUserInput(prompt),) if isinstance(prompt, str) else tuple(prompt)


def _policy(sandbox: SandboxMode | SandboxPolicy) -> SandboxPolicy:
    if not isinstance(sandbox, str):
        return sandbox
    if sandbox not in _POLICIES:
        known = ", ".join(_POLICIES)
        raise OptionInvalid(option="sandbox", value=repr(sandbox), known=known)
    return _POLICIES[sandbox]
