"""A small interpreter makes a place for us, and no trace of it is left.

What it promises beside that is proved with its twin, in the tests of `holding`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.confine.place.holder import PlaceStepRefused
from holdfast.confine.place.place import locked
from holdfast.confine.place.spawn import prepared_apart
from tests.confine.workshop import Workshop

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces")


def test_an_interpreter_that_dies_at_once_is_a_refusal(
    workshop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.draft.mkdir()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with locked(str(workshop.draft), is_new=True) as lock:
        assert lock is not None
        with pytest.raises(PlaceStepRefused) as raised:
            with prepared_apart(workshop.spec, lock, "mark"):
                raise AssertionError("there can be none")

    assert raised.value.number == 0
