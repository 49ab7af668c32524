"""Token file of a server: readable by its owner only.

Decision: docs/decisions/0072-tokens-bound-to-places.md
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from holdfast.exec.failures import TokenUnsafe

_BYTES, _MARK_BYTES = 32, 4
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def token_in(path: Path) -> str:
    """Return the token in a file, which is created with a new one if it is missing.

    Raises `TokenUnsafe` for a file that is empty or readable by others.
    """
    try:
        if not path.exists():
            _make(path)
    except OSError as error:
        raise TokenUnsafe(path=str(path), reason=str(error.strerror).lower()) from error
    return _read(path)


def _make(path: Path) -> None:
    """Create the file atomically with its content: another process may be waiting to read it."""
    word = secrets.token_hex(_MARK_BYTES)
    fresh = path.with_name(f".{path.name}.{word}")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(file, "w", encoding="ascii") as made:
            made.write(f"{secrets.token_urlsafe(_BYTES)}\n")
            made.flush()
            os.fsync(file)
        # Another process was faster: use its token.
        with suppress(FileExistsError):
            os.link(fresh, path)
    finally:
        fresh.unlink()


def _read(path: Path) -> str:
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TokenUnsafe(path=str(path), reason=str(error)) from error
    if mode & _OTHERS:
        raise TokenUnsafe(path=str(path), reason="others may use it; its mode must be 0600")
    token = text.strip()
    if not token or not token.isprintable():
        raise TokenUnsafe(path=str(path), reason="there is no token in it")
    return token
