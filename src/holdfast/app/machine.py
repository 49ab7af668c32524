"""Which machine this is."""

from __future__ import annotations

import os
import platform

from holdfast.app.core.remedies import family_of
from holdfast.app.model import Machine


def this_machine() -> Machine:
    """Name the system and its distribution as far as they are known."""
    release = _os_release()
    return Machine(
        system=platform.system(),
        release=platform.release(),
        name=release.get("PRETTY_NAME", ""),
        family=family_of(release.get("ID", ""), release.get("ID_LIKE", "")),
        is_root=os.geteuid() == 0,
    )


def _os_release() -> dict[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
