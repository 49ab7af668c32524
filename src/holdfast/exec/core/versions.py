"""Agree on a version of the wire with the other side, or say that there is none."""

from __future__ import annotations

from holdfast.exec.wire import Versions
from holdfast.rpc.failures import VersionRefused

OURS = Versions()

_PROTOCOL = "exec"


def agree(theirs: Versions | None, ours: Versions = OURS) -> int | None:
    """The newest version that both sides speak; None with one who names none, as Codex does.

    What then is spoken is what all have in common, and what capabilities add to it.
    """
    if theirs is None:
        return None
    newest = min(ours.newest, theirs.newest)
    if newest < max(ours.oldest, theirs.oldest):
        raise VersionRefused(
            protocol=_PROTOCOL,
            ours_oldest=ours.oldest,
            ours_newest=ours.newest,
            theirs_protocol=_PROTOCOL,
            theirs_oldest=theirs.oldest,
            theirs_newest=theirs.newest,
        )
    return newest


def from_our_side(refused: VersionRefused) -> VersionRefused:
    """What the other side said about the two of us, as we would say it."""
    return VersionRefused(
        protocol=refused.theirs_protocol,
        ours_oldest=refused.theirs_oldest,
        ours_newest=refused.theirs_newest,
        theirs_protocol=refused.protocol,
        theirs_oldest=refused.ours_oldest,
        theirs_newest=refused.ours_newest,
    )
