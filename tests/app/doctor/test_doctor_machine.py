"""Which machine this is."""

from __future__ import annotations

import os
import platform

from holdfast.app.doctor.doctor import this_machine


def test_this_machine_is_known_by_its_system_and_its_user() -> None:
    machine = this_machine()

    assert (machine.system, machine.release) == (platform.system(), platform.release())
    assert machine.is_root == (os.geteuid() == 0)
