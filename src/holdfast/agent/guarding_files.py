"""Ask before a file is changed that programs obey as soon as they see it."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.agent.approving import Approvals
from holdfast.agent.core.leave import Reach, Wish
from holdfast.agent.ports import Desk
from holdfast.confine import PROTECTED
from holdfast.nouns import KEPT, RelativePath


async def require_leave(
    paths: Iterable[RelativePath], content: str, approvals: Approvals, desk: Desk
) -> None:
    """Return if none of the files is protected, or if the person lets these be changed so."""
    guarded = [path for path in paths if is_protected(path)]
    if not guarded:
        return
    facts = (*(("file", str(path)) for path in guarded), ("change", content))
    wish = Wish(Reach.PROTECTED, "change files that programs obey", facts)
    await approvals.require(wish, desk)


def is_protected(path: RelativePath) -> bool:
    """Whether a path is a name that stays as it is, wherever below the project it stands."""
    names = [tuple(name.encode().split(b"/")) for name in (*PROTECTED, *KEPT)]
    lowered = tuple(part.lower() for part in path.parts)  # on some disks .GIT is .git
    return any(
        lowered[start : start + len(name)] == name
        for name in names
        for start in range(len(lowered) - len(name) + 1)
    )
