"""A place is whole before anyone says so, and gone if nobody does."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from holdfast.confine.model import PlaceStep
from holdfast.confine.place import holder as holding
from holdfast.confine.place.holder import PlaceStepRefused, layers, prepared
from holdfast.confine.place.place import locked
from holdfast.confine.place.spawn import prepared_apart
from tests.confine.workshop import Workshop

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.timeout(method="signal"),  # no thread beside us: we fork
]

EITHER = pytest.mark.parametrize("prepare", [prepared, prepared_apart])
Prepare = type(prepared)


def _lay(workshop: Workshop) -> None:
    workshop.draft.mkdir()
    for layer in layers(str(workshop.draft), 0):
        Path(layer).mkdir()


def _ends(life: int) -> bool:
    """Whether a process ends, in due time."""
    try:
        return bool(select.select([life], [], [], 10.0)[0])
    finally:
        os.close(life)


@EITHER
def test_a_place_that_nobody_confirms_is_gone(workshop: Workshop, prepare: Prepare) -> None:
    _lay(workshop)
    with locked(str(workshop.draft), is_new=True) as lock:
        with prepare(workshop.spec, lock, "mark") as place:
            before = os.listdir(f"/proc/{place.pid}/root{workshop.project}")
            life = os.pidfd_open(place.pid)

    assert sorted(before) == ["below", "link", "old"]
    assert _ends(life)
    with locked(str(workshop.draft)) as free:
        assert free is not None


@EITHER
def test_a_holder_keeps_the_lock_and_nothing_else_of_ours(
    workshop: Workshop, prepare: Prepare
) -> None:
    _lay(workshop)
    with locked(str(workshop.draft), is_new=True) as lock:
        with prepare(workshop.spec, lock, "mark") as place:
            place.confirm()
    life = os.pidfd_open(place.pid)
    try:
        ways = {
            name: os.readlink(f"/proc/{place.pid}/fd/{name}")
            for name in os.listdir(f"/proc/{place.pid}/fd")
        }
        null = dict.fromkeys("012", "/dev/null")
        # What else is open is what the program is being loaded from.
        ours = {
            name: way
            for name, way in ways.items()
            if not way.startswith(("/etc/", "/usr/", "/lib"))
        }
        assert ours == {**null, "3": f"{workshop.draft}/lock"}
        assert os.readlink(f"/proc/{place.pid}/cwd") == "/"
        environment = Path(f"/proc/{place.pid}/environ").read_bytes()
        assert environment == f"{holding.MARK}=mark\0".encode()
        with locked(str(workshop.draft)) as taken:
            assert taken is None
    finally:
        os.kill(place.pid, 9)
    assert _ends(life)


@EITHER
def test_what_the_kernel_refuses_is_raised_with_its_step(
    workshop: Workshop, prepare: Prepare
) -> None:
    workshop.draft.mkdir()  # without layers
    with locked(str(workshop.draft), is_new=True) as lock:
        with pytest.raises(PlaceStepRefused) as raised:
            with prepare(workshop.spec, lock, "mark"):
                raise AssertionError("there can be none")

    assert (raised.value.step, raised.value.number) == (PlaceStep.OVERLAY, 2)
