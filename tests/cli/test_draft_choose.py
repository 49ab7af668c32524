"""Where several drafts have changes a person is asked which one is meant."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.workbench.failures import DraftAmbiguous
from tests.cli.workbenches import Bench
