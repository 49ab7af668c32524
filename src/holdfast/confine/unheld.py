"""Remove what sandboxes left in the drafts of places that nobody holds any more.

What stands in for a protected name in a place lands in its draft. If the holder dies together with
whoever would have cleaned up, it stays there, and nobody sees the place again until it is held. So
it is written down where each place keeps its layers, and they are cleaned without being mounted.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.confine.core.policy import is_within
from holdfast.confine.core.protected import stand_in
from holdfast.confine.holding import layers
from holdfast.confine.locking import locked
from holdfast.confine.model import Holder
from holdfast.confine.placeholders import Placeholders, remove
from holdfast.confine.records import living_holder

_NAME = "place.json"
_WHITEOUT = stat.S_IFCHR  # a device of number 0: to an overlay, that something was removed


class _Layers(msgspec.Struct, frozen=True):
    """A draft and what it covers, in any bytes; of the machine itself, nothing."""

    directory: bytes = b""
    covered: tuple[bytes, ...] = ()


def remember_layers(state: Path, holder: Holder | None) -> None:
    """Write down in which draft the sandboxes of a state directory work, or that in none."""
    told = msgspec.json.encode(_Layers() if holder is None else _layers(holder))
    path = state / _NAME
    with suppress(FileNotFoundError):
        if path.read_bytes() == told:
            return
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    following = state / f"{_NAME}-{secrets.token_hex(4)}"
    following.write_bytes(told)
    following.rename(path)


def _layers(holder: Holder) -> _Layers:
    covered = (holder.project, *holder.also)
    return _Layers(os.fsencode(holder.directory), tuple(map(os.fsencode, covered)))


def clean_all(states: Path) -> None:
    """Remove what the dead have left behind, in drafts and on the machine itself.

    Of each there is a state directory. Places that somebody holds are left to who can enter them.
    """
    if not states.is_dir():
        return
    for state in sorted(states.iterdir()):
        try:
            told = msgspec.json.decode((state / _NAME).read_bytes(), type=_Layers)
        except (OSError, msgspec.MsgspecError):
            continue
        if told.directory:
            _clean_layers(state, told)
        else:
            Placeholders(state, root=None).clean()


def _clean_layers(state: Path, told: _Layers) -> None:
    directory = os.fsdecode(told.directory)
    paths = map(os.fsdecode, told.covered)
    covered = {path: layers(directory, n)[0] for n, path in enumerate(paths)}
    left = _Left(state, covered)
    # Who has the lock may make the place, so it is not taken for nothing.
    if left.are_left and living_holder(directory) is None:
        with locked(directory) as lock:
            if lock is not None:
                left.clean()


class _Left(Placeholders):
    """What stands in, seen from outside: in the layers of a draft that is not mounted."""

    def __init__(self, state: Path, covered: Mapping[str, str]) -> None:
        super().__init__(state, root=None)
        self._covered = covered

    def _remove(self, path: str, number: int) -> None:
        """Files have other numbers here; the mark, the name and that it is empty must do."""
        for below, upper in self._covered.items():
            if is_within(path, (below,)):
                _remove_from_layer(upper + path.removeprefix(below), path)
                return
        super()._remove(path, number)


def _remove_from_layer(name: str, path: str) -> None:
    """As the overlay would: what it covers stays covered."""
    if remove(name, stand_in(path), root=None) and os.path.lexists(path):
        os.mknod(name, _WHITEOUT, os.makedev(0, 0))
