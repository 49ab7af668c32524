"""A child of ours that does something to itself, and what became of it."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_child(act: Callable[[], object]) -> str:
    """Run it in a forked child; return what it returned as text, or the name of what it raised."""
    hears, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "something that nobody expected"
        try:
            said = str(act())
        except OSError as error:
            said = type(error).__name__
        finally:
            os.write(tells, said.encode(errors="surrogateescape"))
            os._exit(0)
    os.close(tells)
    with open(hears, errors="surrogateescape") as reports:
        said = reports.read()
    _, status = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else said
