"""Let two versions of the program find out whether, and how, they can talk."""

from __future__ import annotations

import msgspec

from holdfast.rpc.failures import HandshakeMissing, HandshakeRepeated, VersionRefused


class Hello(msgspec.Struct, frozen=True, rename="camel"):
    """How one side introduces itself: the versions of a protocol that it speaks, and its name."""

    protocol: str
    oldest: int
    newest: int
    name: str = ""
    version: str = ""


class Welcome(msgspec.Struct, frozen=True, rename="camel"):
    """How the other side answers: the version that both will speak, and its own name."""

    agreed: int
    hello: Hello


def agree(ours: Hello, theirs: Hello) -> int:
    """Choose the newest version that both sides speak."""
    newest = min(ours.newest, theirs.newest)
    if ours.protocol != theirs.protocol or newest < max(ours.oldest, theirs.oldest):
        raise VersionRefused(
            protocol=ours.protocol,
            ours_oldest=ours.oldest,
            ours_newest=ours.newest,
            theirs_protocol=theirs.protocol,
            theirs_oldest=theirs.oldest,
            theirs_newest=theirs.newest,
        )
    return newest


class Gate:
    """Lets nothing through before the introduction, and the introduction only once."""

    def __init__(self, *, method: str) -> None:
        self.method = method
        self.open = False

    def admit(self, method: str) -> None:
        """Raise unless this method may be called now."""
        if method == self.method and self.open:
            raise HandshakeRepeated()
        if method != self.method and not self.open:
            raise HandshakeMissing(method=method)
