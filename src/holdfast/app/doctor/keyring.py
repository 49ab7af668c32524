"""Ask the keyring of the desktop, in a process of its own that is not waited for long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

from holdfast.app.doctor.children import ask
from holdfast.app.doctor.confinement import Keyring
from holdfast.app.doctor.model import Refused


@dataclass(frozen=True, slots=True)
class _Entries:
    entries: dict[str, str]


def has_library() -> bool:
    """Whether the library for keyrings is installed beside us; we need none."""
    return find_spec("keyring") is not None


async def keyring_entries(names: Iterable[str]) -> dict[str, str]:
    """The keys that the keyring has by these names; one that cannot be used has none."""
    if not has_library():
        return {}
    found = await ask("keyrings.entries", ",".join(names), _Entries)
    return {} if isinstance(found, Refused) else found.entries


async def keyring_usable() -> Keyring | Refused:
    """Which keyring answers, or why none does; it is refused with ENOENT without a library."""
    if not has_library():
        return Refused("no library for keyrings is installed", "ENOENT")
    return await ask("keyrings.usable", "", Keyring)
