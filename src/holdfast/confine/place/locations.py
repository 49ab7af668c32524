"""Know in which draft the sandboxes of a state directory work, and where it keeps a path."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.confine.model import Holder
from holdfast.confine.place.holder import layers
from holdfast.confine.policy import is_within

_NAME = "place.json"


class LayerLocations(msgspec.Struct, frozen=True):
    """A draft and what it covers, in any bytes; of the machine itself, nothing."""

    directory: bytes = b""
    covered: tuple[bytes, ...] = ()

    def layer(self, path: str) -> str | None:
        """Where the draft keeps what is written to a path; None for what it does not cover."""
        for number, below in enumerate(map(os.fsdecode, self.covered)):
            if is_within(path, (below,)):
                return layers(os.fsdecode(self.directory), number)[0] + path.removeprefix(below)
        return None


def remember_layers(state: Path, holder: Holder | None) -> None:
    """Write down in which draft the sandboxes of a state directory work, or that in none."""
    told = msgspec.json.encode(LayerLocations() if holder is None else _whereabouts(holder))
    path = state / _NAME
    with suppress(FileNotFoundError):
        if path.read_bytes() == told:
            return
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    following = state / f"{_NAME}-{secrets.token_hex(4)}"
    following.write_bytes(told)
    following.rename(path)


def remembered(state: Path) -> LayerLocations | None:
    """What was written down; without that it is the machine itself, and None if it is spoiled."""
    try:
        return msgspec.json.decode((state / _NAME).read_bytes(), type=LayerLocations)
    except FileNotFoundError:
        return LayerLocations()
    except (OSError, msgspec.MsgspecError):
        return None


def _whereabouts(holder: Holder) -> LayerLocations:
    covered = (holder.project, *holder.also)
    return LayerLocations(os.fsencode(holder.directory), tuple(map(os.fsencode, covered)))
