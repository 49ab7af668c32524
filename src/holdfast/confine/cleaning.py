"""Remove what sandboxes left behind, on the machine, in places, in drafts that nobody holds.

What stands in for a protected name in a place lands in its draft. If the holder dies together with
whoever would have cleaned up, it stays there, and nobody sees the place again until it is held. So
it is written down where each place keeps its layers, and they are cleaned without being mounted.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.confine.placeholders import Placeholders


def clean(state: Path) -> None:
    """Remove what sandboxes of a state directory that were killed have left behind."""
    Placeholders(state).clean()


def clean_all(states: Path) -> None:
    """Do so for each of the state directories in one directory, if that is there."""
    if states.is_dir():
        for state in sorted(states.iterdir()):
            clean(state)
