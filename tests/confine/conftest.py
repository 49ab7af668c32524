"""What every test of confinement may ask for."""

from __future__ import annotations

from tests.confine.workshop import workshop

__all__ = ["workshop"]
