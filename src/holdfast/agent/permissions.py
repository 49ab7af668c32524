"""Ask for permission to go beyond the sandbox, and remember what was granted.

Decision: docs/decisions/0134-permission-for-what-was-shown.md
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from holdfast.agent.failures import PermissionRefused
from holdfast.agent.permission_rules import (
    PermissionAnswer,
    PermissionDecision,
    PermissionMode,
    PermissionRequest,
    PermissionScope,
    decide,
    detail_of,
    title_of,
)
from holdfast.agent.ports import ToolContext
from holdfast.confine import PROTECTED
from holdfast.nouns import CHANGE_DENIED, RelativePath
from holdfast.world import SystemDisk, make_private, replace_file


class Permissions:
    """Permissions of a session, and lasting ones from a file of the person."""

    def __init__(
        self, kept: Path | None = None, *, asking: PermissionMode = PermissionMode.ASK
    ) -> None:
        """Store lasting permissions in the file `kept`; without it none are stored."""
        self._kept, self._asking = kept, asking
        self._granted: set[str] = set()

    def is_granted(self, wish: PermissionRequest) -> bool:
        """Whether exactly this request was granted before."""
        return wish.digest in self._granted | self._lasting()

    async def require(self, wish: PermissionRequest, context: ToolContext) -> None:
        """Return when the request is granted; raises PermissionRefused otherwise."""
        granted = self._granted | self._lasting()
        verdict, reason = decide(wish, self._asking, granted)
        if verdict is PermissionDecision.ASK:
            choices = tuple(answer.value for answer in wish.answers)
            said = await context.ask(title_of(wish), detail_of(wish), choices, is_permission=True)
            if said in choices[:-1]:
                self._take(wish, PermissionAnswer(said))
                return
            reason = "the person refused, or did not answer"
        if verdict is not PermissionDecision.ALLOWED:
            raise PermissionRefused(wish=wish.does, reason=reason)

    def _take(self, wish: PermissionRequest, answer: PermissionAnswer) -> None:
        if answer is not PermissionAnswer.ONCE:
            self._granted.add(wish.digest)
        if answer is PermissionAnswer.ALWAYS and self._kept is not None:
            lasting = sorted(self._lasting() | {wish.digest})
            make_private(self._kept.parent)
            replace_file(SystemDisk(), self._kept, [msgspec.json.encode(lasting)])

    def _lasting(self) -> set[str]:
        """Return the digests of lasting permissions; an unreadable file grants nothing."""
        if self._kept is None:
            return set()
        try:
            return set(msgspec.json.decode(self._kept.read_bytes(), type=list[str]))
        except (OSError, ValueError):  # ValueError: not JSON, or not even UTF-8
            return set()


async def require_file_permission(
    paths: Iterable[RelativePath], content: str, approvals: Permissions, context: ToolContext
) -> None:
    """Ask for permission if any of the files is protected."""
    guarded = [path for path in paths if is_protected(path)]
    if not guarded:
        return
    facts = (*(("file", str(path)) for path in guarded), ("change", content))
    wish = PermissionRequest(PermissionScope.PROTECTED, "change files that programs obey", facts)
    await approvals.require(wish, context)


def is_protected(path: RelativePath) -> bool:
    """Whether the path, or any directory on it, has a protected name."""
    names = [tuple(name.encode().split(b"/")) for name in (*PROTECTED, *CHANGE_DENIED)]
    # Case-insensitive file systems resolve .GIT to .git.
    lowered = tuple(part.lower() for part in path.parts)
    return any(
        lowered[start : start + len(name)] == name
        for name in names
        for start in range(len(lowered) - len(name) + 1)
    )
