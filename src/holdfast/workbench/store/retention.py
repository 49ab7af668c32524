"""Decide which checkpoints go when there are too many, or too little room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from holdfast.nouns import Id
from holdfast.workbench.model import Checkpoint, Occasion

KEEP_MIN: Final = 1000  # where space allows

_TURN: Final = {
    Occasion.AUTO: 0,
    Occasion.MANUAL: 1,
    Occasion.PRE_RESTORE: 2,
    Occasion.PUBLISH: 2,
}
assert _TURN.keys() == set(Occasion), "every occasion has its turn"


def prune_order(
    checkpoints: Sequence[Checkpoint], *, in_use: Collection[Id] = (), with_manual: bool = False
) -> tuple[Id, ...]:
    """What may go, the first to go first: automatic before manual, old before new.

    Not among them are checkpoints that something builds on, the newest of all, and the last of each
    occasion that a person would go back to after a publication or a restore. Manual ones, which a
    person made on purpose, only `with_manual`.
    """
    manual = [] if with_manual else _of(checkpoints, Occasion.MANUAL)
    kept = {
        *in_use,
        *(one.id for one in manual),
        *_latest(checkpoints),
        *_latest(_of(checkpoints, Occasion.PUBLISH)),
    }
    kept.update(_latest(_of(checkpoints, Occasion.PRE_RESTORE)))
    prunable = [checkpoint for checkpoint in checkpoints if checkpoint.id not in kept]
    prunable.sort(key=lambda one: (_TURN[one.occasion], one.at_ms, one.id))
    return tuple(checkpoint.id for checkpoint in prunable)


def surplus(order: Sequence[Id], *, count: int, keep_min: int = KEEP_MIN) -> tuple[Id, ...]:
    """What goes of `count` checkpoints even while there is room: those above `keep_min`."""
    return tuple(order[: max(0, count - keep_min)])


def _of(checkpoints: Iterable[Checkpoint], occasion: Occasion) -> list[Checkpoint]:
    return [checkpoint for checkpoint in checkpoints if checkpoint.occasion is occasion]


def _latest(checkpoints: Sequence[Checkpoint]) -> set[Id]:
    """By itself, or nothing where there is none."""
    newest = sorted(checkpoints, key=lambda one: (one.at_ms, one.id))[-1:]
    return {checkpoint.id for checkpoint in newest}
