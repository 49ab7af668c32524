"""All that can be done to a workbench, each with the world that it is done in."""

from __future__ import annotations

from tests.faults.workbench_flow_scenes import FLOW_SCENES
from tests.faults.workbench_scene import Scene
from tests.faults.workbench_store_scenes import STORE_SCENES

SCENES: dict[str, Scene] = {**STORE_SCENES, **FLOW_SCENES}
MARKED = ["transaction", "batch", "publish", "restore", "undo", "batch in a layer"]
MARKED += ["publish a layer"]
"""Scenes in which a marker is put."""
