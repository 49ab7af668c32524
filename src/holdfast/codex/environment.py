"""The environment that a Codex started by us gets when nobody says otherwise."""

from __future__ import annotations

import os


def inherited() -> dict[str, str]:
    """Ours: an embedded SDK has no settings to take one from."""
    return dict(os.environ)
