"""A fence of Landlock as plain data, and as the kernel reads it; imports nothing of ours."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """What is forbidden, bit by bit, and what is granted nevertheless, path by path."""

    files: int
    network: int
    scopes: int
    grants: Sequence[tuple[str, int]]

    def attributes(self) -> bytes:
        """What is forbidden, for the kernel; one that knows no scopes must not hear of them."""
        if self.scopes:
            return struct.pack("=QQQ", self.files, self.network, self.scopes)
        return struct.pack("=QQ", self.files, self.network)


def grant(rights: int, descriptor: int) -> bytes:
    """One grant, for the kernel: rights on what a descriptor stands for, and on all below it."""
    return struct.pack("=Qi", rights, descriptor)
