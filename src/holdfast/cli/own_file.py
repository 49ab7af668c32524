"""Read what a person has written in a file of their own."""

from __future__ import annotations

from pathlib import Path

from holdfast.app.failures import ConfigUnreadable
from holdfast.world import disk_failure


def own_text(path: Path) -> str:
    """What the file says; nothing where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise disk_failure(error, path=str(path)) from error
    except UnicodeDecodeError as error:
        raise ConfigUnreadable(file=str(path), problem="it is no text") from error
