"""An editor is answered, or it is said what is missing for that."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.cli.failures import EditorSupportMissing
from tests.cli.running import holdfast


def test_without_the_package_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "acp.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = holdfast("acp", home=tmp_path, PYTHONPATH=path)

    assert ended.returncode == EditorSupportMissing.kind.exit_status
    assert EditorSupportMissing.code in ended.stderr
