"""Ask the keyring of the desktop, by the library for it; who has none does not run this."""

from __future__ import annotations

from importlib import import_module

from holdfast.app.probes.answer import answer
from holdfast.app.probes.scratch import Facts

_SERVICE = "holdfast"
_NOBODY = "doctor"

keyring = import_module("keyring")  # by name, because it is not a dependency


def usable(_: str) -> Facts:
    """Look for an entry that is not there, and say which keyring has answered."""
    keyring.get_password(_SERVICE, _NOBODY)
    return {"name": str(keyring.get_keyring().name)}


def entries(names: str) -> Facts:
    """What the keyring has for us, by these names with commas between them."""
    found = {name: keyring.get_password(_SERVICE, name) for name in names.split(",")}
    return {"entries": {name: str(value) for name, value in found.items() if value}}


if __name__ == "__main__":
    answer(usable, entries)
