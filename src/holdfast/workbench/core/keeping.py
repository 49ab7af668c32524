"""How a checkpoint is written as an object."""

from __future__ import annotations

import msgspec

from holdfast.nouns import IdInvalid, check_id
from holdfast.workbench.model import CONTENT_ID_BYTES, Checkpoint

PREFIX = "cp"


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """Write a checkpoint."""
    return msgspec.json.encode(checkpoint)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Read what `encode_checkpoint` wrote; raise ValueError with the reason if nobody has."""
    try:
        kept = msgspec.json.decode(data, type=Checkpoint)
        check_id(kept.id, PREFIX)
    except (msgspec.DecodeError, IdInvalid) as error:
        raise ValueError(str(error)) from error
    if len(kept.tree) != CONTENT_ID_BYTES:
        raise ValueError("it names no tree")
    return kept
