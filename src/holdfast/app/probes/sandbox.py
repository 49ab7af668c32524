"""Make a sandbox and a place here, as Holdfast makes them."""

from __future__ import annotations

import os

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts, scratch
from holdfast.confine.failures import PlaceUnavailable
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import end
from holdfast.confine.sandbox.preflight import preflight


def strength(_: str) -> Facts:
    """Shut a small program in, as well as it works."""
    found = preflight()
    return {"strength": found.strength or "none", "reasons": list(found.reasons)}


def place(directory: str) -> Facts:
    """Make the place of a draft, and end it."""
    with scratch(directory) as here:
        project, draft = os.path.join(here, "project"), os.path.join(here, "draft")
        os.mkdir(project)
        try:
            create(PlaceSpec(directory=draft, project=project)).close()
        except PlaceUnavailable as unavailable:
            return {"is_made": False, "reason": unavailable.reason}
        finally:
            end(draft)
    return {"is_made": True}


if __name__ == "__main__":
    answer(strength, place)
