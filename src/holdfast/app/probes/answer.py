"""How a probe answers: its facts, or what the system said instead, as one line of JSON."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable

from holdfast.app.probes.scratch import Facts, NowhereToTry


def answer(*probes: Callable[[str], Facts]) -> None:
    """Run the probe that the first argument names on the directory that the second names."""
    signal.signal(signal.SIGTERM, _leave)
    _, name, directory = sys.argv
    (probe,) = (probe for probe in probes if probe.__name__ == name)
    try:
        said: Facts = {"facts": probe(directory)}
    except OSError as error:
        said = {"refused": _refused(error)}
    print(json.dumps(said))  # noqa: T201  # a probe is a program, and this is its answer


def _refused(error: OSError) -> Facts:
    number = error.errno or 0
    return {
        "reason": os.strerror(number) if number else str(error),
        "errno": errno.errorcode.get(number, ""),
        "is_nowhere": isinstance(error, NowhereToTry),
    }


def _leave(number: int, _: object) -> None:
    """Unwind, so that scratch files are removed."""
    sys.exit(128 + number)
