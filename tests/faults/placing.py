"""A process that makes a place, joins it, and is killed at any moment while it does.

    python -m tests.faults.placing DRAFT PROJECT

It says what it is about to do, so that who kills it can be sure to have met each step.
"""

from __future__ import annotations

import os
import sys

from holdfast.confine.entry import ProcessEntry, enter
from holdfast.confine.failures import PlaceHeld, PlaceLost, PlaceUnavailable
from holdfast.confine.model import PlaceSpec
from holdfast.confine.place.creation import create
from holdfast.confine.place.place import end, find

SCRIPT = "echo written >> written; setsid sleep 100 & (sleep 100 &) ; exec sleep 0.05"


def main(draft: str, project: str) -> None:
    """Make it, use it and end it, until somebody kills us."""
    while True:
        print("create", flush=True)
        try:
            place = create(PlaceSpec(directory=draft, project=project))
        except PlaceHeld:
            print("find", flush=True)
            found = find(draft)
            if found is None:
                continue
            place = found
        except (PlaceUnavailable, PlaceLost):  # somebody has killed who was to make or hold it
            print("refused", flush=True)
            continue
        with place:
            print("join", flush=True)
            argv = ("/bin/sh", "-c", SCRIPT)
            entry = ProcessEntry(argv, {}, project, argv[0], {0: 0, 2: 2}, place.namespaces)
            try:
                os.waitpid(enter(entry), 0)
            except OSError as error:  # somebody has killed the holder under our feet
                print("lost", error.errno, flush=True)
        print("end", flush=True)
        end(draft)


if __name__ == "__main__":
    main(*sys.argv[1:])
