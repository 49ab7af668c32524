"""How the content of a file becomes objects: whole, or cut into pieces of a fixed length.

Cut or not, the name of a content depends on its bytes alone, never on how they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from holdfast.workbench.core.record import ObjectSort

PIECE_BYTES = 2**20
WHOLE_BYTES_MAX = 8 * 2**20  # what is larger is cut

Put = Callable[[ObjectSort, bytes], bytes]
"""Takes an object and gives its name."""


def cut_content(data: Iterable[bytes], put: Put) -> tuple[bytes, int]:
    """Put a content that comes in parts of any length; return its name and how long it is."""
    held: list[bytes] = []
    names: list[bytes] = []
    size = 0
    for piece in _even(data):
        size += len(piece)
        held.append(piece)
        if size > WHOLE_BYTES_MAX:
            names += [put(ObjectSort.BLOB, one) for one in held]
            held.clear()
    if names:
        return put(ObjectSort.PIECES, b"".join(names)), size
    return put(ObjectSort.BLOB, b"".join(held)), size


def _even(data: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut evenly."""
    rest = b""
    for part in data:
        rest = rest + part if rest else part
        at = 0
        while len(rest) - at >= PIECE_BYTES:
            yield rest[at : at + PIECE_BYTES]
            at += PIECE_BYTES
        rest = rest[at:]
    if rest:
        yield rest
