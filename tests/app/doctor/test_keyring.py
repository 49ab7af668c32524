"""The keyring is asked if there is a library for it, and waited for by nobody."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from holdfast.app.doctor import children
from holdfast.app.doctor.confinement import Keyring
from holdfast.app.doctor.keyring import has_library, keyring_entries, keyring_usable
from holdfast.app.doctor.model import Refused
from tests.app.probes.test_keyrings import LIBRARY

pytestmark = pytest.mark.anyio

LOCKED = "def get_password(service, name):\n    raise RuntimeError('the keyring is locked')\n"
SLOW = "import time\n\ndef get_password(service, name):\n    time.sleep(1000)\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a library that is installed for us and for what we start."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(children, "WAIT_LONGEST", 60.0)  # however slow the machine is
    return tmp_path / "keyring.py"


def install(library: Path, text: str) -> None:
    library.write_text(text)
    importlib.invalidate_caches()


async def test_what_it_has_is_told(library: Path) -> None:
    install(library, LIBRARY)

    assert await keyring_entries(["here", "there"]) == {"there": "sk-there"}
    assert await keyring_usable() == Keyring("a small keyring")
    assert "keyring" not in sys.modules


@pytest.mark.skipif(has_library(), reason="there is a library for keyrings here")
async def test_without_a_library_there_is_nothing_to_ask() -> None:
    refused = Refused("no library for keyrings is installed", "ENOENT")

    assert (await keyring_entries(["there"]), await keyring_usable()) == ({}, refused)


async def test_one_that_is_broken_has_nothing_and_says_why(library: Path) -> None:
    install(library, LOCKED)
    usable = await keyring_usable()

    assert await keyring_entries(["there"]) == {}
    assert isinstance(usable, Refused)
    assert usable.reason.endswith("RuntimeError: the keyring is locked")


async def test_one_that_waits_for_a_person_is_not_waited_for(
    library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "WAIT_LONGEST", 0.5)
    install(library, SLOW)

    assert await keyring_entries(["there"]) == {}
    assert await keyring_usable() == Refused("no answer within 0.5 s")
