"""One word for all that a draft changes: two drafts with the same seal publish the same.

When a file was written does not matter, and neither does what the person changes in the project
where the draft changed nothing: the seal speaks of the draft's own changes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from blake3 import blake3

from holdfast.workbench.model import Change, Entry

_CONTEXT = "holdfast workbench 2026 seal of a draft"
_LENGTH = Struct("<Q")
_NOTHING = b"-"


def seal_of(changes: Iterable[Change]) -> str:
    """The seal of these changes, whatever their order."""
    hashed = blake3(derive_key_context=_CONTEXT)
    for change in sorted(changes, key=lambda change: change.path):
        for part in (change.path.raw, *_parts(change.before), *_parts(change.after)):
            hashed.update(_LENGTH.pack(len(part)) + part)
    return hashed.hexdigest()


def _parts(entry: Entry | None) -> Iterator[bytes]:
    """What an entry is told apart by, in an order that nothing else has."""
    if entry is None:
        yield _NOTHING
        return
    yield entry.sort.encode()
    yield b"%o" % entry.mode
    yield entry.content
    yield entry.target
    yield b"%d" % len(entry.xattrs)
    for name, value in entry.xattrs:
        yield name
        yield value
