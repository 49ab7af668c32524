"""Try whether the kernel itself keeps paths inside a directory."""

from __future__ import annotations

import errno
import os

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts
from holdfast.world.openat2 import open_beneath


def leaving(directory: str) -> Facts:
    """Try to leave a directory; the kernel must say no."""
    root = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:
        os.close(open_beneath(root, b"..", os.O_PATH, 0))
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return {"is_enforced": True}
    finally:
        os.close(root)
    return {"is_enforced": False}


if __name__ == "__main__":
    answer(leaving)
