"""Keep what a failed test could not close from being held against the test after it.

Pytest keeps the frames of a failure until the next test runs. Whatever is open in them is closed
only then, and warns of it only then.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Generator

import pytest

_HOLDERS = ("last_type", "last_value", "last_traceback", "last_exc")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Let go of a failure as soon as it has been reported."""
    result = yield
    if hasattr(sys, "last_value"):
        for name in _HOLDERS:
            if hasattr(sys, name):
                delattr(sys, name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
    return result
